cat <<E
x
