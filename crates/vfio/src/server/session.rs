//! The requests in the messages of a client.

use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use ssdyno_block::Time;
use ssdyno_pci::PciDevice;
use ssdyno_spec::vfio_user::{
    self as layout, DeviceInfo, DmaMap, DmaUnmap, InterruptInfo, RegionAccess, RegionInfo,
    SetInterrupts, VfioUserVersion, command,
};
use zerocopy::IntoBytes;

use super::slot::Slot;
use crate::ProtocolError;
use crate::message::{DATA_BYTES_MAX, Message, header, send};
use crate::version::{MINOR, VersionData, our_version_data};

/// A reply's fixed part, and data behind it.
type Reply = (Vec<u8>, Vec<u8>);

/// Does what `message` asks for, and answers.
pub(super) fn handle<D: PciDevice>(
    slot: &mut Slot<D>,
    now: Time,
    socket: &UnixStream,
    message: Message,
    agreed: &mut bool,
) -> Result<(), ProtocolError> {
    let (id, code) = (message.header.message_id.get(), message.header.command.get());
    let flags = message.header.flags.get();
    if flags & layout::FLAG_TYPE != 0 {
        return Err(ProtocolError::Flags { message_id: id, flags });
    }
    // A refused client receives the reason before the connection ends.
    let mut end = Ok(());
    let reply = if *agreed {
        execute(slot, now, message)
    } else {
        agree(&message).map_err(|error| {
            end = Err(error);
            Errno::INVAL
        })
    };
    *agreed |= reply.is_ok();
    if flags & layout::FLAG_NO_REPLY != 0 {
        return end;
    }
    let sent = match &reply {
        Ok((fixed, data)) => {
            let header = header(id, code, layout::FLAG_REPLY, fixed.len() + data.len());
            send(socket, &header, [fixed, data], &[])
        }
        Err(error) => {
            let mut header = header(id, code, layout::FLAG_REPLY | layout::FLAG_ERROR, 0);
            header.error = (error.raw_os_error() as u32).into();
            send(socket, &header, [&[], &[]], &[])
        }
    };
    end.and_then(|()| Ok(sent?))
}

/// The first message.
fn agree(message: &Message) -> Result<Reply, ProtocolError> {
    let code = message.header.command.get();
    if code != command::VERSION {
        return Err(ProtocolError::NoVersion { command: code });
    }
    let Some((version, data)) = message.parse::<VfioUserVersion>() else {
        return Err(ProtocolError::VersionBytes { bytes: message.body.len() });
    };
    let (major, minor) = (version.major.get(), version.minor.get());
    if major != 0 {
        return Err(ProtocolError::Version { major, minor });
    }
    // The client's capabilities matter only to a side that sends descriptors or reads memory by message.
    let text = data.strip_suffix(&[0]).unwrap_or(data);
    if !text.is_empty() {
        let theirs = serde_json::from_slice::<VersionData>(text).map_err(|error| {
            let before = text.split_inclusive(|byte| *byte == b'\n').take(error.line().max(1) - 1);
            let at = before.map(<[u8]>::len).sum::<usize>() + error.column();
            ProtocolError::VersionData { major, minor, at }
        })?;
        theirs.check()?;
    }
    let ours = VfioUserVersion { major: 0.into(), minor: minor.min(MINOR).into() };
    Ok((ours.as_bytes().to_vec(), our_version_data()))
}

fn execute<D: PciDevice>(slot: &mut Slot<D>, now: Time, message: Message) -> Result<Reply, Errno> {
    let only = |fixed: &[u8]| Ok((fixed.to_vec(), Vec::new()));
    let code = message.header.command.get();
    if !message.descriptors.is_empty()
        && !matches!(code, command::DMA_MAP | command::DEVICE_SET_IRQS)
    {
        return Err(Errno::INVAL);
    }
    match code {
        command::DMA_MAP => {
            let (asked, _) = message.parse::<DmaMap>().ok_or(Errno::INVAL)?;
            let mut files = message.descriptors;
            if files.len() > 1 {
                return Err(Errno::INVAL);
            }
            slot.bus.maps.map(&asked, files.pop())?;
            only(&[])
        }
        command::DMA_UNMAP => {
            let (asked, _) = message.parse::<DmaUnmap>().ok_or(Errno::INVAL)?;
            slot.bus.maps.unmap(&asked)?;
            only(asked.as_bytes())
        }
        command::DEVICE_GET_INFO => {
            message.parse::<DeviceInfo>().ok_or(Errno::INVAL)?;
            only(device_info().as_bytes())
        }
        command::DEVICE_GET_REGION_INFO => {
            let (asked, _) = message.parse::<RegionInfo>().ok_or(Errno::INVAL)?;
            let bytes = slot.region_bytes(asked.index.get()).ok_or(Errno::INVAL)?;
            only(region_info(asked.index.get(), bytes).as_bytes())
        }
        command::DEVICE_GET_IRQ_INFO => {
            let (asked, _) = message.parse::<InterruptInfo>().ok_or(Errno::INVAL)?;
            let info = slot.bus.interrupts.info(asked.index.get()).ok_or(Errno::INVAL)?;
            only(info.as_bytes())
        }
        command::DEVICE_SET_IRQS => {
            let size = size_of::<SetInterrupts>();
            let (asked, _) = message.parse::<SetInterrupts>().ok_or(Errno::INVAL)?;
            slot.bus.interrupts.set(&asked, &message.body[size..], message.descriptors)?;
            slot.show_interrupts();
            only(&[])
        }
        command::REGION_READ => {
            let (asked, _) = access(slot, &message)?;
            let mut data = vec![0; asked.count.get() as usize];
            slot.read(now, asked.region.get(), asked.offset.get(), &mut data);
            Ok((asked.as_bytes().to_vec(), data))
        }
        command::REGION_WRITE => {
            let (asked, data) = access(slot, &message)?;
            let data = data.get(..asked.count.get() as usize).ok_or(Errno::INVAL)?;
            slot.write(now, asked.region.get(), asked.offset.get(), data);
            only(asked.as_bytes())
        }
        command::DEVICE_RESET => {
            slot.reset(now);
            slot.show_interrupts();
            only(&[])
        }
        // Some are known but not supported: the client works without them.
        _ => Err(Errno::NOTSUP),
    }
}

/// An access that lies in its region.
fn access<'a, D: PciDevice>(
    slot: &Slot<D>,
    message: &'a Message,
) -> Result<(RegionAccess, &'a [u8]), Errno> {
    let (asked, data) = message.parse::<RegionAccess>().ok_or(Errno::INVAL)?;
    let bytes = slot.region_bytes(asked.region.get()).ok_or(Errno::INVAL)?;
    let end = asked.offset.get().checked_add(u64::from(asked.count.get()));
    let fits = end.is_some_and(|end| end <= bytes) && asked.count.get() <= DATA_BYTES_MAX;
    if fits { Ok((asked, data)) } else { Err(Errno::INVAL) }
}

fn device_info() -> DeviceInfo {
    DeviceInfo {
        argument_bytes: (size_of::<DeviceInfo>() as u32).into(),
        flags: (layout::DEVICE_PCI | layout::DEVICE_RESETS).into(),
        regions: layout::REGIONS.into(),
        interrupts: layout::INTERRUPTS.into(),
    }
}

fn region_info(index: u32, bytes: u64) -> RegionInfo {
    let flags = if bytes > 0 { layout::REGION_READABLE | layout::REGION_WRITABLE } else { 0 };
    RegionInfo {
        argument_bytes: (size_of::<RegionInfo>() as u32).into(),
        flags: flags.into(),
        index: index.into(),
        bytes: bytes.into(),
        ..RegionInfo::default()
    }
}
