# The fastest way for bash to fill a variable is to format a number with leading zeros.
ballast=
if (($1)); then printf -v ballast '%0*d' "$1" 0; fi
echo "${#ballast}"
while read -r count; do
    done=0
    for ((i = 0; i < count; i++)); do
        "$2"
        (($? == $3)) && ((++done))
    done
    echo "$done"
done
