set -- 2 4
f() { local n=$1; shift; for x in "$@" 8; do A+=(--x "$x" $((n++))); done; return 0; }
f "$1" $2 || exit 1
while getopts t: o; do T=$OPTARG; done
read -r P Q <<< "2 1"
case $P in [0-9]) A[1]=3;; @(a|b)) ;; esac
N=$(cat <<EOF
don't
EOF
)
[ $N = 1 ] && A=("${A[@]}" --y)
torchrun --nproc_per_node 8 --nnodes ${#A[@]} a.py --num-layers $Q ${A[@]}
