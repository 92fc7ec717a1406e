//! The power state that the host sets as the driver starts (S1-45).

use ssdyno_block::ConfigError;
use ssdyno_device::PowerControl;
use ssdyno_device::nvme::NvmeSetup;
use ssdyno_driver_nvme::{DriverEvent, Feature, NvmeConfig, NvmeDriver};

use crate::error::RunError;

/// The number of the power state that `driver` sets, if it sets one.
pub(crate) fn wanted(driver: &NvmeConfig) -> Option<u8> {
    // The last one wins, as for the controller: Set Features of one identifier overwrites the value
    // of the previous command.
    driver.features.iter().rev().find_map(|feature| match feature {
        Feature::PowerState(state) => Some(*state),
        _ => None,
    })
}

/// Refuses a power state that the device does not have or could not keep to.
pub(super) fn check(
    setup: &NvmeSetup,
    driver: &NvmeConfig,
    device: Option<&dyn PowerControl>,
) -> Result<(), RunError> {
    let Some(state) = wanted(driver) else { return Ok(()) };
    let nvme = &setup.nvme;
    let all = nvme.operational_states.len() + setup.low_power_states.len();
    let index = usize::from(state);
    let error = |problem, help: &str| {
        Err(RunError::Device(ConfigError::new("nvme.operational_states", problem, help)))
    };
    if index >= all {
        let problem = format!("there is no power state {state}: the last is {}", all - 1);
        return error(problem, "choose another state, or add it to the device file");
    }
    // State 0 is the state of full power, to which every device can keep. Non-operational states
    // are entered while idle and limit no work.
    let Some(limit) = nvme.operational_states.get(index).filter(|_| index > 0) else {
        return Ok(());
    };
    let Some(device) = device else {
        if limit.power.0 <= 0.0 {
            return Ok(());
        }
        let problem = format!(
            "power state {state} limits the power, but the power of this device cannot be limited"
        );
        return error(problem, "choose state 0, or an SSD such as sim:gen4-consumer");
    };
    let least = device.least_watts();
    // A limit below the idle power cannot be kept by doing less. The governor would delay every
    // request without end.
    if limit.power.0 > 0.0 && limit.power.0 < least {
        let problem = format!(
            "power state {state} allows {:.2} W, but this device draws {least:.2} W without any work",
            limit.power.0
        );
        return error(
            problem,
            "choose a state with more power, or lower the idle powers of [energy]",
        );
    }
    Ok(())
}

/// An error if the controller did not take the power state.
pub(super) fn refused(driver: &mut NvmeDriver) -> Result<(), RunError> {
    let mut events = Vec::new();
    driver.take_events(&mut events);
    let (Some(state), Some(refused)) = (
        wanted(driver.config()),
        events.iter().find_map(|event| match event {
            DriverEvent::FeatureRefused { identifier, status }
                if *identifier == Feature::PowerState(0).identifier() =>
            {
                Some(*status)
            }
            _ => None,
        }),
    ) else {
        return Ok(());
    };
    let problem =
        format!("the controller refused power state {state}: status {:#05x}", refused.bits());
    Err(RunError::Device(ConfigError::new("nvme.operational_states", problem, "choose another")))
}
