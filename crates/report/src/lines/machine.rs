//! Lines about the machine under a real target.

use ssdyno_figures::probe::{CpuShares, MachineActivity};
use ssdyno_figures::{percent, rate, watts};

/// A few lines for the terminal.
pub(crate) fn text(machine: &MachineActivity) -> String {
    let mut facts = Vec::new();
    let share = |pick: fn(&CpuShares) -> f64| {
        machine.mean(|sample| sample.cpu.as_ref().map(pick)).map(percent)
    };
    let user = share(|cpu| cpu.user);
    let system = share(|cpu| cpu.system + cpu.irq + cpu.softirq);
    if let (Some(user), Some(system)) = (user, system) {
        facts.push(format!("CPU {user} user, {system} kernel"));
    }
    for (figure, what) in [
        (machine.mean(|s| s.interrupts_per_second), "interrupts/s"),
        (machine.mean(|s| s.context_switches_per_second), "switches/s"),
    ] {
        facts.extend(figure.map(|figure| format!("{} {what}", rate(figure))));
    }
    let power =
        machine.mean(|s| s.power.as_ref().map(|all| all.iter().map(|sensor| sensor.watts).sum()));
    facts.push(match power {
        Some(power) => format!("power {}", watts(power)),
        None => "power not available".to_owned(),
    });
    let mut text = format!("\nMachine   {}\n", facts.join(", "));
    if let Some(check) = &machine.device_check {
        text.push_str(&format!("Device    {} - {}\n", check.detail, check.verdict()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_sensors_has_no_power() {
        let text = text(&MachineActivity::default());
        assert!(text.contains("power not available"), "{text}");
    }
}
