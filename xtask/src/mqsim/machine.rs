//! The machine and the loads, as MQSim's two files describe them.
//!
//! One machine for both: that of `sim:config-a`. Where MQSim cannot do what configuration A does, ours is
//! changed ([`OURS`]); what is left is in [`DIFFERENCES`].

/// Our settings besides the preset: MQSim ends with a fault where pages are to be copied inside a die, and joins planes
/// only where pages have the same number in their blocks.
pub(crate) const OURS: &[&str] = &["flash.copy=controller", "flash.multi_plane=same-page"];

/// Keys of our device as its resolved file prints them, which the numbers below stand for.
pub(crate) const KEYS: &[&str] = &[
    "channels = 8",
    "chips_per_channel = 4",
    "dies_per_chip = 2",
    "planes_per_die = 2",
    "blocks_per_plane = 512",
    "pages_per_block = 64",
    "page_size = \"4KiB\"",
    "spare_size = \"0B\"",
    "cell = \"slc\"",
    "read_time = \"50us\"",
    "program_time = \"500us\"",
    "erase_time = \"3.5ms\"",
    "bus = \"333MB/s\"",
    "multi_plane = \"same-page\"",
    "read_priority = false",
    "program_suspend = false",
    "erase_suspend = false",
    "copy = \"controller\"",
    "name = \"page\"",
    "over_provisioning = 0.1454753722794959",
    "cleaning = \"greedy\"",
    "free_blocks_low = 0.05",
    "placement = \"static\"",
    "static_order = \"CWDP\"",
    "wear_levelling = \"off\"",
    "policy = \"none\"",
    "kind = \"ideal\"",
];

/// The remaining differences between the two machines.
pub(crate) const DIFFERENCES: &[&str] = &[
    "MQSim's dies of a package take turns at its command interface, its bus has 0.2 to 0.4 us of command \
     cycles an operation, and its link costs 3 ns a request: its reads take longer (compare the IOPS)",
    "MQSim's static wear levelling cannot be switched off; it moves a block or two in a run",
    "ours is preconditioned in every run, which is in its time; MQSim starts empty: its reads find a place \
     for the page as they come, and its writes are counted once the device has been overwritten",
    "ours meters energy, checks its invariants and keeps distributions and a series; MQSim keeps sums",
];

/// Logical pages: 0.873 of the flash, in both.
pub(crate) const LOGICAL_PAGES: u64 = 128 * 512 * 64 * 873 / 1000;

/// A load, the same for both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    /// The preset workload of ours.
    pub(crate) workload: &'static str,
    pub(crate) read_percent: u32,
    /// Requests outstanding, closed loop.
    pub(crate) depth: u32,
}

/// Random reads of 4 KiB, as the preset `randread`.
pub(crate) const READ: Load =
    Load { name: "random read, depth 32", workload: "randread", read_percent: 100, depth: 32 };

/// Random writes of 4 KiB. One at a time: in a deeper queue some of MQSim's writes never end (31 of 22
/// million at depth 32), so that the queue runs dry in some million requests. At depth 1 all ended.
pub(crate) const WRITE: Load =
    Load { name: "random write, depth 1", workload: "randwrite", read_percent: 0, depth: 1 };

/// MQSim's file of the machine.
pub(crate) fn device_xml() -> String {
    let device = tags(&[
        ("Seed", "321"),
        ("Enabled_Preconditioning", "false"),
        ("Memory_Type", "FLASH"),
        ("HostInterface_Type", "NVME"),
        ("IO_Queue_Depth", "1024"),
        ("Queue_Fetch_Size", "512"),
        ("Caching_Mechanism", "SIMPLE"),
        ("Data_Cache_Sharing_Mode", "SHARED"),
        ("Data_Cache_Capacity", "268435456"),
        ("Data_Cache_DRAM_Row_Size", "8192"),
        ("Data_Cache_DRAM_Data_Rate", "800"),
        ("Data_Cache_DRAM_Data_Busrt_Size", "4"),
        ("Data_Cache_DRAM_tRCD", "13"),
        ("Data_Cache_DRAM_tCL", "13"),
        ("Data_Cache_DRAM_tRP", "13"),
        ("Address_Mapping", "PAGE_LEVEL"),
        ("Ideal_Mapping_Table", "true"),
        ("CMT_Capacity", "268435456"),
        ("CMT_Sharing_Mode", "SHARED"),
        ("Plane_Allocation_Scheme", "CWDP"),
        ("Transaction_Scheduling_Policy", "OUT_OF_ORDER"),
        ("Overprovisioning_Ratio", "0.127"),
        ("GC_Exec_Threshold", "0.05"),
        ("GC_Block_Selection_Policy", "GREEDY"),
        ("Use_Copyback_for_GC", "false"),
        ("Preemptible_GC_Enabled", "false"),
        ("GC_Hard_Threshold", "0.005"),
        ("Dynamic_Wearleveling_Enabled", "false"),
        ("Static_Wearleveling_Enabled", "false"),
        ("Static_Wearleveling_Threshold", "100000"),
        ("Preferred_suspend_erase_time_for_read", "700000"),
        ("Preferred_suspend_erase_time_for_write", "700000"),
        ("Preferred_suspend_write_time_for_read", "100000"),
        ("Flash_Channel_Count", "8"),
        ("Flash_Channel_Width", "1"),
        ("Channel_Transfer_Rate", "333"),
        ("Chip_No_Per_Channel", "4"),
        ("Flash_Comm_Protocol", "NVDDR2"),
    ]);
    let host = tags(&[
        ("PCIe_Lane_Bandwidth", "100"),
        ("PCIe_Lane_Count", "16"),
        ("SATA_Processing_Delay", "400000"),
        ("Enable_ResponseTime_Logging", "false"),
        ("ResponseTime_Logging_Period_Length", "1000000"),
    ]);
    let device = tag("Device_Parameter_Set", &(device + &flash_xml()));
    let host = tag("Host_Parameter_Set", &host);
    HEAD.to_owned() + &tag("Execution_Parameter_Set", &(host + &device))
}

/// The part of the machine's file that describes its flash.
fn flash_xml() -> String {
    let flash = tags(&[
        ("Flash_Technology", "SLC"),
        ("CMD_Suspension_Support", "NONE"),
        ("Page_Read_Latency_LSB", "50000"),
        ("Page_Read_Latency_CSB", "50000"),
        ("Page_Read_Latency_MSB", "50000"),
        ("Page_Program_Latency_LSB", "500000"),
        ("Page_Program_Latency_CSB", "500000"),
        ("Page_Program_Latency_MSB", "500000"),
        ("Block_Erase_Latency", "3500000"),
        // It keeps a count for each number of erases up to here.
        ("Block_PE_Cycles_Limit", "100000"),
        ("Suspend_Erase_Time", "700000"),
        ("Suspend_Program_Time", "100000"),
        ("Die_No_Per_Chip", "2"),
        ("Plane_No_Per_Die", "2"),
        ("Block_No_Per_Plane", "512"),
        ("Page_No_Per_Block", "64"),
        ("Page_Capacity", "4096"),
        ("Page_Metadat_Capacity", "0"),
    ]);
    tag("Flash_Parameter_Set", &flash)
}

/// MQSim's file of the load: `requests` of them.
pub(crate) fn workload_xml(load: &Load, requests: u64, seed: u64) -> String {
    let number = |n: u64| n.to_string();
    let flow = tags(&[
        ("Priority_Class", "HIGH"),
        ("Device_Level_Data_Caching_Mode", "TURNED_OFF"),
        ("Channel_IDs", "0,1,2,3,4,5,6,7"),
        ("Chip_IDs", "0,1,2,3"),
        ("Die_IDs", "0,1"),
        ("Plane_IDs", "0,1"),
        ("Initial_Occupancy_Percentage", "100"),
        ("Working_Set_Percentage", "100"),
        ("Synthetic_Generator_Type", "QUEUE_DEPTH"),
        ("Read_Percentage", &number(load.read_percent.into())),
        ("Address_Distribution", "RANDOM_UNIFORM"),
        ("Percentage_of_Hot_Region", "0"),
        ("Generated_Aligned_Addresses", "true"),
        ("Address_Alignment_Unit", "8"),
        ("Request_Size_Distribution", "FIXED"),
        ("Average_Request_Size", "8"),
        ("Variance_Request_Size", "0"),
        ("Seed", &number(798 + seed)),
        ("Average_No_of_Reqs_in_Queue", &number(load.depth.into())),
        ("Intensity", "32768"),
        ("Stop_Time", "0"),
        ("Total_Requests_To_Generate", &number(requests)),
    ]);
    let flow = tag("IO_Flow_Parameter_Set_Synthetic", &flow);
    HEAD.to_owned() + &tag("MQSim_IO_Scenarios", &tag("IO_Scenario", &flow))
}

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"us-ascii\"?>\n";

fn tag(name: &str, inside: &str) -> String {
    format!("<{name}>\n{inside}</{name}>\n")
}

fn tags(pairs: &[(&str, &str)]) -> String {
    pairs.iter().map(|(name, value)| format!("<{name}>{value}</{name}>\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tag is closed, in turn, and stands once.
    #[test]
    fn files_are_well_formed() {
        for text in [device_xml(), workload_xml(&READ, 5, 0), workload_xml(&WRITE, 7, 2)] {
            let mut open = Vec::new();
            let mut seen = Vec::new();
            for piece in text.split('<').skip(1).filter(|piece| !piece.starts_with('?')) {
                let (name, _) = piece.split_once('>').unwrap();
                match name.strip_prefix('/') {
                    Some(name) => assert_eq!(open.pop(), Some(name)),
                    None => {
                        assert!(!seen.contains(&name), "{name} stands twice");
                        seen.push(name);
                        open.push(name);
                    }
                }
            }
            assert!(open.is_empty());
        }
        assert!(workload_xml(&WRITE, 7, 2).contains("<Total_Requests_To_Generate>7<"));
        assert!(workload_xml(&WRITE, 7, 2).contains("<Seed>800<"));
    }

    /// The geometry that both have: 16 GiB of flash.
    #[test]
    fn logical_pages_are_those_of_configuration_a() {
        let pages = 128 * 512 * 64;
        assert_eq!(LOGICAL_PAGES, (pages as f64 / 1.145_475_372_279_496) as u64);
    }
}
