//! The rules for a drive file beyond its schema. The rules for zones are in `layout`, those for the seek curve in
//! `seek`.

use ssdyno_block::units::Bandwidth;
use ssdyno_block::{ConfigError, Time};

use crate::config::{CacheTable, DiskTable};

/// The error of the key `disk.KEY`.
pub(crate) fn error(key: &str, problem: impl Into<String>, help: &str) -> ConfigError {
    ConfigError::new(format!("disk.{key}"), problem.into(), help)
}

impl DiskTable {
    /// Checks what can be known without the layout.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if ![512, 4096].contains(&self.sector.0) {
            let help = "use \"512B\" or \"4KiB\"";
            return Err(error(
                "sector",
                format!("{} is not a valid sector size", self.sector),
                help,
            ));
        }
        let help = "set the revolutions per minute, such as 7200";
        ConfigError::within("disk.rpm", self.rpm, 1e3..=5e4, help)?;
        let counts = [
            ("surfaces", self.surfaces, 64, "set the number of heads, such as 4"),
            ("band", self.band, 1 << 20, "use a number of cylinders, such as 64"),
            (
                "depth",
                self.depth,
                1 << 16,
                "set the number of commands that the drive queues, such as 32",
            ),
        ];
        for (key, number, most, help) in counts {
            ConfigError::within(format!("disk.{key}"), number, 1..=most, help)?;
        }
        let range = Bandwidth(1e4)..=Bandwidth(1e12);
        ConfigError::within("disk.bus", self.bus, range, "use a rate such as \"300MB/s\"")?;
        self.check_times()?;
        self.cache.as_ref().map_or(Ok(()), |cache| self.check_cache(cache))
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let overhead = &self.overhead;
        let times = [
            ("head_switch", self.head_switch),
            ("write_settle", self.write_settle),
            ("overhead.read_hit", overhead.read_hit),
            ("overhead.read_hit_apart", overhead.read_hit_apart.unwrap_or_default()),
            ("overhead.read_miss", overhead.read_miss),
            ("overhead.write_hit", overhead.write_hit),
            ("overhead.write_miss", overhead.write_miss),
            ("overhead.read_after_write", overhead.read_after_write),
            ("overhead.write_after_read", overhead.write_after_read),
        ];
        for (key, span) in times {
            if span.0 > Time::from_s(1) {
                let help = "use a time such as \"250us\"";
                return Err(error(key, "longer than a second", help));
            }
        }
        let power = &self.power;
        if power.spin_up_time.0 > Time::from_s(600) {
            let help = "use a time such as \"10s\"";
            return Err(error("power.spin_up_time", "longer than ten minutes", help));
        }
        let watts = [
            ("spindle", power.spindle),
            ("spin_up", power.spin_up),
            ("electronics", power.electronics),
            ("command", power.command),
            ("seek", power.seek),
            ("read", power.read),
            ("write", power.write),
            ("standby", power.standby),
        ];
        for (key, watts) in watts {
            if !(0.0..=1e4).contains(&watts.0) {
                let problem = format!("{watts} is outside 0 W to 10 kW");
                return Err(error(&format!("power.{key}"), problem, "use a power such as \"5W\""));
            }
        }
        Ok(())
    }

    fn check_cache(&self, cache: &CacheTable) -> Result<(), ConfigError> {
        for (key, number, most) in
            [("segments", cache.segments, 1024), ("write_extents", cache.write_extents, 1 << 16)]
        {
            let help = "use a number such as 16";
            ConfigError::within(format!("disk.cache.{key}"), number, 1..=most, help)?;
        }
        let sizes = [
            ("segment", cache.segment, true),
            ("read_ahead", cache.read_ahead, false),
            ("write_back", cache.write_back, false),
        ];
        for (key, bytes, positive) in sizes {
            if !bytes.0.is_multiple_of(self.sector.0)
                || bytes.0 > 1 << 40
                || positive && bytes.0 == 0
            {
                let problem = format!("{bytes} is not a multiple of {} up to 1 TiB", self.sector);
                let help = "use a size such as \"2MiB\"";
                return Err(error(&format!("cache.{key}"), problem, help));
            }
        }
        if cache.read_ahead > cache.segment {
            let problem = format!("{} is more than a segment holds", cache.read_ahead);
            let help = "use at most disk.cache.segment";
            return Err(error("cache.read_ahead", problem, help));
        }
        Ok(())
    }
}
