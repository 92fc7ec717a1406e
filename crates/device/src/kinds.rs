//! Kinds of devices, and the registry that any crate can compose of them.
//!
//! A device file is of the kind whose table it has: `[delay]` makes it a delay. A [`DeviceSpec`] is the file of any
//! kind, read and checked against its schema; whoever loads, prints or builds a device needs to know no more. Which
//! kinds there are is said by the [`DeviceKinds`] that reads the file. This module contains no list of all kinds.

use std::any::Any;
use std::fmt::Debug;

use dyn_clone::DynClone;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use ssdyno_block::units::Bytes;
use ssdyno_block::{ConfigError, Preset, SECTOR_BYTES};
use toml::Table;

use crate::Device;
use crate::faults::{FaultConfig, Faulty};
use crate::nvme::{NamespaceConfig, NvmeControllerConfig};

/// The file of one kind of device.
pub trait DeviceConfig:
    Clone + PartialEq + Debug + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// Its name in the paths of reports: `delay`.
    const NAME: &'static str;
    /// The table that a file of this kind has, and no other.
    const TABLE: &'static str;
    /// The kind in words: `a delay`.
    const WHAT: &'static str;
    /// It takes requests from a driver of its own kind only.
    const OWN_DRIVER: bool = false;

    /// The device as it leaves the factory, without the faults that the file asks for: those go around it.
    /// `seed` decides about everything random in it.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    fn build(&self, seed: u64) -> Result<Box<dyn Device>, ConfigError>;

    /// The faults that are injected.
    fn faults(&self) -> &FaultConfig;

    /// The place of the table `[nvme]`; `None`: no NVMe controller can be in front of devices of this kind.
    fn nvme(&self) -> Option<&Option<NvmeControllerConfig>> {
        None
    }

    /// The same, to be changed.
    fn nvme_mut(&mut self) -> Option<&mut Option<NvmeControllerConfig>> {
        None
    }

    /// The least that can be read or written, in bytes. Known once the file is complete.
    fn sector_bytes(&self) -> u32 {
        SECTOR_BYTES
    }

    /// Reads the files of the devices that it is made of, which may be of any of `kinds`. A file is complete, and
    /// may be built, once this was called.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong, such as `array.members[1].delay.capacity`.
    fn resolve(&mut self, kinds: DeviceKinds) -> Result<(), ConfigError> {
        let _ = kinds;
        Ok(())
    }
}

/// Where a [`DeviceConfig`] with fields `faults` and `nvme` has these tables.
#[macro_export]
macro_rules! common_tables {
    () => {
        fn faults(&self) -> &$crate::faults::FaultConfig {
            &self.faults
        }

        fn nvme(&self) -> Option<&Option<$crate::nvme::NvmeControllerConfig>> {
            Some(&self.nvme)
        }

        fn nvme_mut(&mut self) -> Option<&mut Option<$crate::nvme::NvmeControllerConfig>> {
            Some(&mut self.nvme)
        }
    };
}

/// Why a text is not a device file.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum DeviceFileError {
    /// Not TOML, or a key or value that the schema of its kind does not have.
    #[error(transparent)]
    Unreadable(#[from] toml::de::Error),
    /// The file of a device that this one is made of is wrong.
    #[error(transparent)]
    Member(#[from] ConfigError),
}

/// The operations of a registered kind before there is a device.
pub struct DeviceKind {
    /// See [`DeviceConfig::NAME`].
    pub name: &'static str,
    /// See [`DeviceConfig::TABLE`].
    pub table: &'static str,
    /// See [`DeviceConfig::WHAT`].
    pub what: &'static str,
    /// The devices of this kind that come with the program.
    pub presets: &'static [Preset],
    read: fn(&str) -> Result<DeviceSpec, toml::de::Error>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl DeviceKind {
    /// The kind whose files are `T`.
    pub const fn of<T: DeviceConfig>(presets: &'static [Preset]) -> DeviceKind {
        DeviceKind {
            name: T::NAME,
            table: T::TABLE,
            what: T::WHAT,
            presets,
            read: |text| Ok(DeviceSpec::new(toml::from_str::<T>(text)?)),
            schema: |generator| generator.subschema_for::<T>(),
        }
    }

    /// The shape of its files, with every key.
    pub fn schema(&self) -> Schema {
        let mut generator = SchemaGenerator::default();
        let schema = (self.schema)(&mut generator);
        let mut whole = schema;
        whole.insert("$defs".to_owned(), generator.take_definitions(true).into());
        whole
    }
}

/// A list of kinds: all that a program knows. The first is the kind of a file that has the table of none.
#[derive(Clone, Copy)]
pub struct DeviceKinds(&'static [DeviceKind]);

impl DeviceKinds {
    /// The kinds of `kinds`, each after all kinds whose tables its files may contain: the last one that fits is used.
    ///
    /// # Panics
    /// There is none.
    pub const fn new(kinds: &'static [DeviceKind]) -> DeviceKinds {
        assert!(!kinds.is_empty(), "a registry needs a kind for files that have the table of none");
        DeviceKinds(kinds)
    }

    /// Every kind.
    pub const fn all(self) -> &'static [DeviceKind] {
        self.0
    }

    /// The kind of a file with the tables of `file`.
    pub fn kind_of(self, file: &Table) -> &'static DeviceKind {
        // A card has flash, too: the most special kind is the last.
        let named = self.0.iter().rev().find(|kind| file.contains_key(kind.table));
        named.unwrap_or(&self.0[0])
    }

    /// The devices that come with the program, of each kind in turn.
    pub fn presets(self) -> impl Iterator<Item = &'static Preset> {
        self.0.iter().flat_map(|kind| kind.presets)
    }

    /// The device called `name`, as after `sim:`.
    pub fn find(self, name: &str) -> Option<&'static Preset> {
        self.presets().find(|preset| preset.name == name)
    }

    /// Reads a device file, with those of the devices that it is made of.
    ///
    /// # Errors
    /// [`DeviceFileError`] names the wrong one.
    pub fn parse(self, text: &str) -> Result<DeviceSpec, DeviceFileError> {
        let mut spec = self.read(text)?;
        spec.resolve(self)?;
        Ok(spec)
    }

    /// The first step of [`parse`](DeviceKinds::parse), for callers that report TOML errors at their place in the text:
    /// [`DeviceSpec::resolve`] is still to come.
    ///
    /// # Errors
    /// Not TOML, or a key or value that the schema of its kind does not have.
    pub fn read(self, text: &str) -> Result<DeviceSpec, toml::de::Error> {
        (self.kind_of(&toml::from_str(text)?).read)(text)
    }

    /// The schema of any device file; its tables decide the kind of device.
    pub fn schema(self, generator: &mut SchemaGenerator) -> Schema {
        let kinds: Vec<Schema> = self.0.iter().map(|kind| (kind.schema)(generator)).collect();
        schemars::json_schema!({
            "description": "Any device file. Its tables decide the kind of device.",
            "anyOf": kinds,
        })
    }
}

/// The operations of every [`DeviceConfig`] behind a pointer.
trait AnyConfig: Any + Debug + DynClone + Send + Sync {
    fn name(&self) -> &'static str;
    fn what(&self) -> &'static str;
    fn own_driver(&self) -> bool;
    fn build(&self, seed: u64) -> Result<Box<dyn Device>, ConfigError>;
    fn faults(&self) -> &FaultConfig;
    fn nvme(&self) -> Option<&Option<NvmeControllerConfig>>;
    fn nvme_mut(&mut self) -> Option<&mut Option<NvmeControllerConfig>>;
    fn sector_bytes(&self) -> u32;
    fn resolve(&mut self, kinds: DeviceKinds) -> Result<(), ConfigError>;
    fn table(&self) -> Result<Table, toml::ser::Error>;
    fn toml(&self) -> Result<String, toml::ser::Error>;
    fn again(&self, table: Table) -> Option<DeviceSpec>;
    fn same(&self, other: &dyn Any) -> bool;
}

dyn_clone::clone_trait_object!(AnyConfig);

impl<T: DeviceConfig> AnyConfig for T {
    fn name(&self) -> &'static str {
        T::NAME
    }
    fn what(&self) -> &'static str {
        T::WHAT
    }
    fn own_driver(&self) -> bool {
        T::OWN_DRIVER
    }
    fn build(&self, seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        DeviceConfig::build(self, seed)
    }
    fn faults(&self) -> &FaultConfig {
        DeviceConfig::faults(self)
    }
    fn nvme(&self) -> Option<&Option<NvmeControllerConfig>> {
        DeviceConfig::nvme(self)
    }
    fn nvme_mut(&mut self) -> Option<&mut Option<NvmeControllerConfig>> {
        DeviceConfig::nvme_mut(self)
    }
    fn sector_bytes(&self) -> u32 {
        DeviceConfig::sector_bytes(self)
    }
    fn resolve(&mut self, kinds: DeviceKinds) -> Result<(), ConfigError> {
        DeviceConfig::resolve(self, kinds)
    }
    fn table(&self) -> Result<Table, toml::ser::Error> {
        Table::try_from(self)
    }
    fn toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(self)
    }
    fn again(&self, table: Table) -> Option<DeviceSpec> {
        table.try_into::<T>().ok().map(DeviceSpec::new)
    }
    fn same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>().is_some_and(|other| other == self)
    }
}

/// The file of a device of any kind.
#[derive(Clone, Debug)]
pub struct DeviceSpec(Box<dyn AnyConfig>);

impl DeviceSpec {
    /// That of a device of the kind `T`, registered or not.
    pub fn new<T: DeviceConfig>(config: T) -> DeviceSpec {
        DeviceSpec(Box::new(config))
    }

    /// See [`DeviceConfig::resolve`].
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn resolve(&mut self, kinds: DeviceKinds) -> Result<(), ConfigError> {
        self.0.resolve(kinds)
    }

    /// See [`DeviceConfig::NAME`].
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// See [`DeviceConfig::WHAT`].
    pub fn what(&self) -> &'static str {
        self.0.what()
    }

    /// See [`DeviceConfig::OWN_DRIVER`].
    pub fn own_driver(&self) -> bool {
        self.0.own_driver()
    }

    /// The device as it leaves the factory, with the faults that its file asks for.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        self.build_with(self.faults(), seed)
    }

    /// The same behind a controller that injects the faults of the file itself. The device has only `slow_by` of them:
    /// the controller draws a fault for each command and cannot slow the device for a period.
    ///
    /// # Errors
    /// [`ConfigError`] names the key that is wrong.
    pub fn build_behind_controller(&self, seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        let FaultConfig { slow_by, slow_for, .. } = *self.faults();
        self.build_with(&FaultConfig { slow_by, slow_for, ..FaultConfig::default() }, seed)
    }

    fn build_with(&self, faults: &FaultConfig, seed: u64) -> Result<Box<dyn Device>, ConfigError> {
        self.faults().check()?;
        let device = self.0.build(seed)?;
        Ok(if faults.is_none() { device } else { Box::new(Faulty::new(device, faults, seed)) })
    }

    /// Its table `[nvme]`, if it has one.
    pub fn nvme(&self) -> Option<&NvmeControllerConfig> {
        self.0.nvme()?.as_ref()
    }

    /// A controller with the defaults of every key in front of a device that has none; false where there cannot be
    /// one.
    pub fn add_nvme(&mut self) -> bool {
        let block_size = Bytes(u64::from(self.sector_bytes()));
        let Some(place) = self.0.nvme_mut() else { return false };
        place.get_or_insert_with(|| NvmeControllerConfig {
            namespaces: vec![NamespaceConfig { size: None, block_size }],
            ..NvmeControllerConfig::default()
        });
        true
    }

    /// See [`DeviceConfig::sector_bytes`].
    pub fn sector_bytes(&self) -> u32 {
        self.0.sector_bytes()
    }

    /// See [`DeviceConfig::faults`].
    pub fn faults(&self) -> &FaultConfig {
        self.0.faults()
    }

    /// The full resolved form, with every key.
    pub fn to_toml(&self) -> String {
        // A struct of tables and plain values always has a TOML form.
        self.0.toml().unwrap_or_default()
    }

    /// The same as a table, for a program that knows `kinds`; `None` where a value does not survive that to the
    /// last digit.
    pub fn to_table(&self, kinds: DeviceKinds) -> Option<Table> {
        let table = self.0.table().ok()?;
        let mut again = self.0.again(table.clone())?;
        (again.resolve(kinds).is_ok() && again == *self).then_some(table)
    }

    /// Its content, if it is of the kind `T`.
    pub fn get<T: DeviceConfig>(&self) -> Option<&T> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// The same, to be changed.
    pub fn get_mut<T: DeviceConfig>(&mut self) -> Option<&mut T> {
        (&mut *self.0 as &mut dyn Any).downcast_mut()
    }
}

impl<T: DeviceConfig> From<T> for DeviceSpec {
    fn from(config: T) -> DeviceSpec {
        DeviceSpec::new(config)
    }
}

impl PartialEq for DeviceSpec {
    fn eq(&self, other: &DeviceSpec) -> bool {
        self.0.same(&*other.0)
    }
}

impl Serialize for DeviceSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.table().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}
