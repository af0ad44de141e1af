#!/usr/bin/env bash
# A sweep over two hosts: each has a network stack, a host name and an SSH server of its own, and the second sees the sweep's
# folder through sshfs alone. The hosts are namespaces of this machine, which takes root, iproute2, openssh-server and sshfs.
# Usage: two_hosts_test.sh <lockstep> <mpiexec>
set -euo pipefail
lockstep=$(realpath "$1") mpiexec=$2
skip() { printf 'SKIPPED: %s\n' "$1" && exit 77; }
fail() { printf 'FAILED: %s\n' "$1" && exit 1; }
[[ $(id -u) == 0 ]] || skip 'only root makes network namespaces'
for tool in ip ssh ssh-keygen sshfs fusermount3 /usr/sbin/sshd; do
  command -v $tool >/dev/null || skip "$tool is not here (apt install iproute2 openssh-server sshfs)"
done
[[ -e /dev/fuse ]] || skip 'there is no /dev/fuse'
scratch=$(mktemp -d)
one=ls$$a two=ls$$b
ip netns add $one 2>/dev/null || skip 'no network namespaces here'
# shellcheck disable=SC2317  # by the trap
gone() {
  ip netns pids $one | xargs -r kill 2>/dev/null || true
  ip netns pids $two | xargs -r kill 2>/dev/null || true
  sleep 0.2
  ip netns del $one || true
  ip netns del $two || true
  rm -rf "$scratch"
}
trap gone EXIT
ip netns add $two
ip link add $one type veth peer name $two 2>/dev/null || skip 'no pair of virtual network devices here'
for host in $one:1 $two:2; do
  ip link set ${host%:*} netns ${host%:*}
  ip -n ${host%:*} addr add 10.213.77.${host#*:}/24 dev ${host%:*}
  ip -n ${host%:*} link set lo up
  ip -n ${host%:*} link set ${host%:*} up
done
ssh-keygen -q -t ed25519 -N '' -f "$scratch/key"
ssh-keygen -q -t ed25519 -N '' -f "$scratch/host"
mkdir -p /run/sshd "$scratch/shared"
for host in $one $two; do
  ip netns exec $host unshare -u -m bash -c "hostname $host && exec /usr/sbin/sshd -o HostKey=$scratch/host \
    -o AuthorizedKeysFile=$scratch/key.pub -o StrictModes=no -o PidFile=none -o UsePAM=no"
done
agent="ssh -q -i $scratch/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
for _ in {1..50}; do ip netns exec $one $agent root@10.213.77.2 true && break || sleep 0.1; done
[[ $(ip netns exec $one $agent root@10.213.77.2 hostname) == "$two" ]] || fail 'the second host has no name of its own'
ip netns exec $one $agent root@10.213.77.2 "sshfs -o ssh_command='$agent' root@10.213.77.1:$scratch/shared $scratch/shared"

cd "$scratch/shared"
"$lockstep" generate --model llama3-8b --num-layers 2 --gpus 8 --tp 2 --gbs 16 --seq 2048 -o w.json 2>/dev/null
cat >grid.yaml <<'G'
command: simulate
flags: {workload: w.json, topology: "Spectrum-X:g=8", threads: 1}
axes:
  - straggler: ["gpu:1:1.1", "gpu:1:1.2", "gpu:1:1.3", "gpu:2:1.4", "gpu:3:1.5", "gpu:4:1.6", "gpu:5:1.7", "gpu:6:1.8"]
  - seed: {from: 1, to: 6, steps: 6}
outputs: [total_s]
G
# over FIRST SECOND FOLDER …: rank 0 on the first host, rank 1 on the second; they speak over the network between them alone.
# What Open MPI takes in MPI_Init it does not give back, and it locks its connections in either order (one thread): sanitizers
# count no leaks and no orders of locks.
over() {
  local first=$1 second=$2 folder=$3
  shift 3
  printf '10.213.77.%s slots=1\n' "$first" "$second" >"$scratch/hosts"
  ip netns exec $one "$mpiexec" --allow-run-as-root --hostfile "$scratch/hosts" -n 2 --mca plm_rsh_agent "$agent" \
    --mca btl tcp,self --mca btl_tcp_if_include 10.213.77.0/24 --mca oob_tcp_if_include 10.213.77.0/24 \
    -x LSAN_OPTIONS=detect_leaks=0 -x TSAN_OPTIONS=detect_deadlocks=0 \
    "$lockstep" sweep grid.yaml -o "$folder" "$@"
}
both() { for rank in 0 1; do grep -q "\"rank\":$rank" "$1/journal.jsonl" || fail "$1: rank $rank has computed nothing"; done; }
"$lockstep" sweep grid.yaml -o "$scratch/alone" >/dev/null
over 1 2 "$scratch/shared/near" >"$scratch/near.txt" 2>&1 || fail "$(<"$scratch/near.txt")"
both near
cmp "$scratch/alone/table.csv" near/table.csv || fail 'two hosts write another table'
# Rank 0, which writes journal and tables, on the host that has the folder over the network.
over 2 1 "$scratch/shared/far" >"$scratch/far.txt" 2>&1 || fail "$(<"$scratch/far.txt")"
both far
cmp "$scratch/alone/table.csv" far/table.csv || fail 'a folder over the network has another table'

# The second host's rank is killed; what is there stays, and the rest is computed by the same command.
over 1 2 "$scratch/shared/killed" >/dev/null 2>&1 &
run=$!
until [[ $(cat killed/journal.jsonl 2>/dev/null | wc -l) -gt 10 ]] || ! kill -0 $run 2>/dev/null; do sleep 0.05; done
ip netns pids $two | while read -r pid; do
  { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -q 'lockstep sweep' && kill -9 "$pid"
done || true
wait $run 2>/dev/null && fail 'a lost rank went unseen' || true
had=$(($(wc -l <killed/journal.jsonl) - 1))
over 1 2 "$scratch/shared/killed" >"$scratch/resumed.txt" 2>&1 || fail "$(<"$scratch/resumed.txt")"
now=$(sed -n 's/.* points, \([0-9]*\) of them.*/\1/p' "$scratch/resumed.txt")
((had + now >= 48 && had + now <= 48 + 3 && now < 48)) || fail "$had rows were there, $now points were computed again"
cmp "$scratch/alone/table.csv" killed/table.csv || fail 'another table after a lost host'
