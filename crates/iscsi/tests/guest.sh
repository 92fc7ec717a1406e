#!/bin/bash
# The first process of a Linux guest that drives the served device with stock tools: open-iscsi, sg3-utils,
# file systems, fio. Each check prints one line; the host reads them. Argument ssdyno=PORT of the kernel.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys 2>/dev/null; mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs tmp /tmp; mount -t tmpfs run /run; mkdir -p /run/lock/iscsi /mnt/a /mnt/b
for module in virtio_net iscsi_tcp sd_mod sg xfs ext4; do modprobe $module; done
ip link set lo up
for card in /sys/class/net/e*; do
    ip link set "$(basename "$card")" up; ip addr add 10.0.2.15/24 dev "$(basename "$card")"
done
PORT=$(sed 's/.*ssdyno=\([0-9]*\).*/\1/' /proc/cmdline)
PORTAL=10.0.2.2:$PORT D=/dev/sda
echo InitiatorName=iqn.2026-01.org.ssdyno:guest >/etc/iscsi/initiatorname.iscsi
dmesg -n 1

# ends STATUS COMMAND...: the command must end so.
ends() {
    local wanted=$1 status; shift
    "$@" >/tmp/said 2>&1; status=$?
    if [ $status = "$wanted" ]; then echo "ok $*"; else
        echo "not ok $*: ended with $status, not $wanted"; sed 's/^/    /' /tmp/said | tail -20
    fi
}
good() { ends 0 "$@"; }
comes() { for _ in $(seq 60); do [ -b "$1" ] && return 0; sleep 0.25; done; return 1; }
login() {
    good iscsiadm -m node --login
    comes $D || { echo "not ok sd binds"; echo o >/proc/sysrq-trigger; sleep 9; }
}
hang_up() { ss -K dst 10.0.2.2 dport = "$PORT" >/dev/null; }

iscsid; sleep 1
good iscsiadm -m discovery -t sendtargets -p "$PORTAL"
good iscsiadm -m node -o update -n node.session.timeo.replacement_timeout -v 120
login
BLOCK=$(blockdev --getss $D)

# What it says of itself.
good sg_inq $D; good sg_inq -e -i $D; good sg_vpd -a $D; good sg_readcap $D; good sg_readcap --16 $D
for page in sv sn di ei bl bdc lbpv; do good sg_vpd -p $page $D; done
good sg_luns $D; good sg_modes -a $D; good sg_modes -a -6 $D; good sg_logs -a $D; good sg_logs -A $D
for control in 0 1 2; do good sg_modes -c $control -p 0x3f $D; done
# The features of the drive cannot be saved: SPC-4, 7.5.1, SAVING PARAMETERS NOT SUPPORTED.
ends 5 sg_modes -c 3 -p 0x3f $D
good sg_opcodes --mask $D; good sg_opcodes -R $D; good sg_opcodes --repd -t $D; good sg_requests $D
good sg_requests -d $D; good sg_senddiag -t $D; good sg_get_lba_status --lba=0 $D

# Commands with data, and what is refused.
dd if=/dev/urandom of=/tmp/random bs=64k count=1 2>/dev/null
(head -c "$BLOCK" /dev/zero; head -c "$BLOCK" /tmp/random) >/tmp/swap
good dd if=/tmp/random of=$D bs=64k oflag=direct
good sg_verify --16 --lba=0 --count=$((65536 / BLOCK)) --ndo=65536 --in=/tmp/random $D
for how in "--10" "--16" "--16 --unmap"; do
    good sg_write_same $how --lba=4 --num=8 --in=/dev/zero --xferlen="$BLOCK" $D
done
ends 14 sg_verify --16 --lba=0 --count=$((65536 / BLOCK)) --ndo=65536 --in=/tmp/random $D
good sg_write_same --16 --ndob --lba=4 --num=8 $D; good sg_unmap --force --lba=4 --num=8 $D
good sg_compare_and_write --lba=4 --num=1 --in=/tmp/swap --xferlen=$((2 * BLOCK)) $D
ends 14 sg_compare_and_write --lba=4 --num=1 --in=/tmp/swap --xferlen=$((2 * BLOCK)) $D
good sg_sync $D; good sg_sync --16 $D
for length in 6 10 12 16; do good sg_dd if=$D of=/dev/null bs="$BLOCK" count=500 bpt=32 cdbsz=$length; done
ends 9 sg_prevent --allow $D; ends 5 sg_rtpg $D; ends 9 sg_sat_identify $D
good sg_persist --out --register --param-sark=0x12 $D
good sg_persist --out --reserve --param-rk=0x12 --prout-type=5 --param-aptpl $D
good sg_persist -s $D; good sg_persist --out --release --param-rk=0x12 --prout-type=5 $D
good sg_persist --out --clear --param-rk=0x12 $D
good sg_start --stop $D; ends 2 sg_turs $D; good sg_start --start $D; good sg_start --pc=2 $D
good sg_start --pc=1 $D; good sdparm --set=SWP $D; ends 7 sg_write_same --16 --ndob --lba=4 --num=8 $D
good sdparm --clear=SWP $D

# Partitions, file systems, data that are checked, deallocation.
printf 'label: gpt\nsize=450M\nsize=450M\n' | good sfdisk $D
comes ${D}2 || partx -a $D
good mkfs.ext4 -q -F ${D}1; good mkfs.xfs -q -f ${D}2
# A stripe without a width would be invalid; of a small volume mkfs says that it is ignored.
ends 1 sh -c "mkfs.xfs -q -f ${D}2 2>&1 | grep -i -e invalid -e error"
good mount -o discard ${D}1 /mnt/a; good mount ${D}2 /mnt/b
for place in a b; do
    good fio --name=check --directory=/mnt/$place --size=12M --bsrange=4k-64k --rw=randwrite --direct=1 \
        --ioengine=libaio --iodepth=16 --verify=crc32c --do_verify=1
    rm -f /mnt/$place/check*; good cp -a /usr/sbin /mnt/$place/; good fstrim /mnt/$place
    good umount /mnt/$place
done
good fsck.ext4 -f -n ${D}1; good xfs_repair -n ${D}2
good mount ${D}1 /mnt/a; good diff -r --no-dereference /usr/sbin /mnt/a/sbin; good umount /mnt/a
good blkdiscard -f ${D}2; good cmp -n 1048576 /dev/zero ${D}2; good blkdiscard -f -z ${D}2

# Resets, and connections that are cut, in the middle of writing; all of it must be there.
fio --name=check --filename=${D}2 --size=64M --bs=16k --rw=randwrite --direct=1 --ioengine=libaio \
    --iodepth=32 --verify=crc32c --do_verify=1 >/tmp/fio 2>&1 &
FIO=$!
sleep 2; good sg_reset -d $D; sleep 2; good sg_reset -t $D; sleep 2; hang_up; sleep 5; hang_up
wait $FIO && echo "ok fio through resets" || { echo "not ok fio"; sed 's/^/    /' /tmp/fio; }
good iscsiadm -m node -u; login; comes ${D}2; good blkdiscard -f ${D}2; good iscsiadm -m node -u

# What the kernel has against it.
dmesg | grep -E 'I/O error|Sense Key|critical|Invalid|[Mm]edium|[Uu]nexpected|rejected. Reason|ABORT|offline' |
    sed 's/^/not ok kernel: /'
echo done; echo o >/proc/sysrq-trigger; sleep 9
