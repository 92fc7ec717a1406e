//! A `--set` with a key that no file has: the error, and the key or option that was probably meant.

use crate::failure::{Failure, in_place_of};
use crate::overlay::{Setting, device_keys, network_keys, workload_keys};
use crate::reference::explain;
use crate::schema_keys::{NETWORK, WORKLOAD};

impl Setting {
    /// Refuses a key that is in no schema, with the nearest that is.
    ///
    /// # Errors
    /// The key is in no schema.
    pub fn check(&self) -> Result<(), Failure> {
        if self.is_known() {
            return Ok(());
        }
        let mut known = device_keys().clone();
        known.extend(workload_keys().iter().map(|key| format!("{WORKLOAD}{key}")));
        known.extend(network_keys().iter().map(|key| format!("{NETWORK}{key}")));
        let of_workload = known.get(&format!("{WORKLOAD}{}", self.key)).map(String::as_str);
        let of_workload = of_workload.map(|key| format!("did you mean `{key}`?"));
        // Keys of the run itself are not keys of a file that it reads.
        let of_run = || {
            let is_one = explain(&self.key).is_ok_and(|found| found[0].key == self.key);
            is_one.then(|| format!("it is not a key of a device or workload: use `{}`", self.key))
        };
        let help = of_workload
            .or_else(of_run)
            .or_else(|| in_place_of(&self.key, &known))
            .unwrap_or_else(|| "`ssdyno explain` lists all keys".to_owned());
        Err(Failure::usage(format!("there is no key `{}`", self.key))
            .with_help(help)
            .with_key(&self.key)
            .at(Some(self.place(true, "unknown key"))))
    }
}
