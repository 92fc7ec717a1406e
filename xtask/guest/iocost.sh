#!/bin/bash
# The first process of a Linux guest that takes the scheduler files of `ssdyno profile`: those of simulated
# devices, which the host made, and those of the disk /dev/vdc, profiled here. The kernel parses each line, and
# what it then shows must have the same figures. Program and files come on the disk /dev/vdb. Each check prints
# one line; the host reads them.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys 2>/dev/null; mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs tmp /tmp; mount -t tmpfs run /run
dmesg -n 1
end() { echo "$1"; echo o >/proc/sysrq-trigger; sleep 9; }
GROUPS_OF=/tmp/cgroup; mkdir -p $GROUPS_OF; mount -t cgroup2 none $GROUPS_OF
echo +io >$GROUPS_OF/cgroup.subtree_control || { echo "not ok the kernel has the io controller"; end done; }
mkdir /tmp/program; tar -xf /dev/vdb -C /tmp/program; SSDYNO=/tmp/program/ssdyno; cd /tmp || end done
DISK=/dev/vdc NUMBER=$(cat /sys/block/vdc/dev)
# The kernel would make fewer requests of sequential ones, and the throttle count those.
echo 2 >/sys/block/vdc/queue/nomerges

# taken FILE CONTROL: the kernel takes the line of FILE and shows it again, figure by figure.
taken() {
    local line shown word
    line=$(grep -v '^#' "$1" | sed "s/^MAJ:MIN/$NUMBER/")
    if ! echo "$line" >$GROUPS_OF/"$2" 2>/tmp/said; then
        echo "not ok $2 takes: $line ($(cat /tmp/said))"; return
    fi
    shown=$(grep "^$NUMBER " $GROUPS_OF/"$2")
    for word in $line; do
        case " $shown " in *" $word "*) ;; *) echo "not ok $2 shows $word: $shown"; return ;; esac
    done
    echo "ok $2 of $(basename "$1"): $line"
}
for name in /tmp/program/*.model; do taken "$name" io.cost.model; taken "${name%.model}.qos" io.cost.qos; done

# The disk serves so many requests and bytes a second, and no more: the figures of the profile are known.
SERIAL=$(cat /sys/block/vdc/serial)
if $SSDYNO profile $DISK --write --destroy "$SERIAL" --span 256M --time 60s --io-cost-model disk.model \
    --io-cost-qos disk.qos >/tmp/said 2>&1; then echo "ok profile $DISK"; else
    echo "not ok profile $DISK"; sed 's/^/    /' /tmp/said | tail -40; end done
fi
taken disk.model io.cost.model; taken disk.qos io.cost.qos
for word in $(grep -v '^#' disk.model); do case $word in *=[0-9]*) echo "figure $word" ;; esac; done

# The model is at work: the kernel counts the cost of what a group of processes reads.
mkdir $GROUPS_OF/load; echo "$NUMBER enable=1" >$GROUPS_OF/io.cost.qos
sh -c "echo \$\$ >$GROUPS_OF/load/cgroup.procs; exec fio --name=read --filename=$DISK --rw=randread --bs=4k \
    --direct=1 --ioengine=libaio --iodepth=8 --time_based --runtime=3" >/tmp/said 2>&1
if grep -q "^$NUMBER .*cost.usage=[1-9]" $GROUPS_OF/load/io.stat; then
    echo "ok cost counted: $(cat $GROUPS_OF/load/io.stat)"; else
    echo "not ok cost counted: $(cat $GROUPS_OF/load/io.stat)"; fi
end done
