#!/bin/bash
# The first process of a Linux guest with a MegaRAID SAS 1078 and an NVMe drive, both behind two bridges: random
# reads of both by more and more threads, by fio and by our own program, which comes on the disk /dev/vdb.
# Each figure prints a line; the host reads them.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys 2>/dev/null; mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs tmp /tmp; mount -t tmpfs run /run
SECONDS_EACH=$(sed 's/.*ssdyno=\([0-9]*\).*/\1/' /proc/cmdline)
dmesg -n 1
end() { echo "$1"; echo o >/proc/sysrq-trigger; sleep 9; }
mkdir /tmp/program; tar -xf /dev/vdb -C /tmp/program; SSDYNO=/tmp/program/ssdyno
$SSDYNO --version >/tmp/said 2>&1 || { echo "not ok the program starts"; cat /tmp/said; end done; }

# As the firmware left it, before any driver has asked for message interrupts.
echo "cpus $(nproc)"
echo "pci begin"; $SSDYNO pci sys; echo "pci end"
for function in /sys/bus/pci/devices/*; do
    echo "linux $(basename "$function") $(cat "$function/class") $(cat "$function/irq") $(readlink -f "$function")"
done
for module in nvme megaraid_sas sd_mod; do modprobe $module; done
comes() { for _ in $(seq 240); do [ -b "$1" ] && return 0; sleep 0.25; done; echo "not ok $1 comes"; }
comes /dev/nvme0n1; comes /dev/sda
echo "queues nvme $(ls /sys/block/nvme0n1/mq | wc -l)"; echo "queues megasas $(ls /sys/block/sda/mq | wc -l)"
for threads in 1 2 4 8; do
    for device in megasas:/dev/sda nvme:/dev/nvme0n1; do
        path=${device#*:} name=${device%%:*}
        rate=$(fio --name=read --filename="$path" --rw=randread --bs=4k --direct=1 --ioengine=psync --thread \
            --numjobs=$threads --time_based --runtime="$SECONDS_EACH" --group_reporting \
            --output-format=terse --terse-version=3 2>/tmp/said | cut -d';' -f8)
        echo "iops fio $name $threads ${rate:-0}"
        rate=$($SSDYNO run "$path" --jobs $threads --set workload.depth=$threads --set workload.block_size=4KiB \
            --for "${SECONDS_EACH}s" --no-probes --keep none --no-live --json 2>>/tmp/said |
            sed -n 's/^  "iops": \([0-9.]*\),$/\1/p')
        echo "iops ssdyno $name $threads ${rate:-0}"
        [ -n "$rate" ] || sed 's/^/    /' /tmp/said
    done
done
end done
