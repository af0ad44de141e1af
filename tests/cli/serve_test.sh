#!/usr/bin/env bash
# A server over TCP and over a Unix socket: commands, the page, the live model, errors, limits, a
# crash of what it runs, and a graceful stop.
# Usage: serve_test.sh <lockstep>
set -Eeuo pipefail
trap 'printf "FAILED: line %s: %s\n" "$LINENO" "$BASH_COMMAND"' ERR
lockstep=$1
scratch=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill -9 "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
fail() {
  printf 'FAILED: %s\n' "$*"
  exit 1
}
command -v curl >/dev/null || { echo "SKIPPED: no curl"; exit 0; }

start() { # <flags>…
  rm -f "$scratch/says"  # what the last one said
  "$lockstep" serve "$@" >"$scratch/says" 2>"$scratch/err" &
  server=$!
  until grep -qs "^listening on " "$scratch/says"; do
    kill -0 "$server" 2>/dev/null || fail "$(cat "$scratch/err")"
    sleep 0.05
  done
  where=$(sed -n 's/^listening on //p' "$scratch/says")
}
stop() {
  kill -TERM "$server"
  wait "$server" || fail "the server ended with $?"
  server=
}
post() { # <path> <body> [curl flags]: the status in $status, the answer in $scratch/answer
  local path=$1 body=$2
  shift 2
  status=$(curl -s -m 60 -o "$scratch/answer" -w '%{http_code}' -H 'Content-Type: application/json' "$@" \
    --data-binary "$body" "${where%/}$path" || true)
}
expect() { # <status> <regex>
  [[ $status == "$1" ]] || fail "status $status, not $1: $(head -c 500 "$scratch/answer")"
  grep -qE "$2" "$scratch/answer" || fail "no '$2' in: $(head -c 500 "$scratch/answer")"
}

# One connection too many is told so.
start --port 0 --connections 1
port=${where##*:}
exec 9<>"/dev/tcp/127.0.0.1/${port%/}"
for try in 1 2 3 4 5 6 7 8 9 10; do # until the first one is taken in
  status=$(curl -s -m 60 -o "$scratch/answer" -w '%{http_code}' "${where}api/v1/about" || true)
  [[ $status == 200 ]] || break
  sleep 0.1
done
expect 503 'too many connections are open'
exec 9>&-
for try in 1 2 3 4 5 6 7 8 9 10; do
  status=$(curl -s -m 60 -o "$scratch/answer" -w '%{http_code}' "${where}api/v1/about" || true)
  [[ $status == 503 ]] || break
  sleep 0.1
done
expect 200 lockstep-serve
stop

# What runs, and what waits, for a client that hangs up is ended, so that the next one is served.
start --port 0 --time-limit 600s --jobs 1 --waiting 1
long='{"arguments": ["collective", "--op", "alltoall", "--size", "1MiB:1TiB", "--algorithm", "direct", "--engine", "flow", "--topology", "Spectrum-X:g=1024"]}'
post /api/v1/run "$long" -m 1 &
first=$!
post /api/v1/run "$long" -m 1
wait "$first"
for ((try = 0; try < 100; ++try)); do
  post /api/v1/run '{"arguments": ["topology", "describe", "Spectrum-X:g=8"]}' -m 2
  [[ $status != 200 ]] || break
  sleep 0.1
done
expect 200 '"ending":"done"'
stop

start --port 0 --time-limit 20s --memory-limit 1GiB --body-limit 100kB --jobs 2 --waiting 2
curl -s "$where" | grep '<title>Lockstep, live</title>' >/dev/null || fail "no page"
curl -s "${where}api/v1/about" | grep '"schema":"lockstep-serve/1"' >/dev/null || fail "no about"
post /api/v1/run '{"arguments": ["collective", "--op", "allreduce", "--size", "1MiB", "--topology", "Spectrum-X:g=8", "--json"]}'
expect 200 '"ending":"done".*"schema":"lockstep-collective/'
post /api/v1/run '{"arguments": ["collective", "--op", "nonsense", "--json"]}'
expect 200 '"ending":"bad-input","exit_code":2'
# A file goes up, another comes down.
post /api/v1/run '{"arguments": ["topology", "check", "t.txt"], "files": {"t.txt": "nonsense"}}'
expect 200 't.txt:1'
post /api/v1/run '{"arguments": ["topology", "build", "--template", "Spectrum-X", "-g", "8", "-o", "t.json"], "want_files": ["t.json"]}'
expect 200 '"files":\{"t.json":"'
post /api/v1/run '{"arguments": ["simulate", "--workload", "/etc/passwd"]}'
expect 403 'is not served'
post /api/v1/run '{"arguments": ["collective", "--op", "alltoall", "--size", "1GiB", "--algorithm", "direct", "--topology", "Spectrum-X:g=1024"], "time_limit_s": 0.01}'
expect 200 '"ending":"timed-out"'
post /api/v1/run 'nonsense'
expect 400 error
head -c 150000 /dev/zero >"$scratch/large"
post /api/v1/run "@$scratch/large"
expect 413 'too large'
# Who is still sending when the answer comes may go on, and gets it.
port=${where##*:}
exec 3<>"/dev/tcp/127.0.0.1/${port%/}"
printf 'POST /api/v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n{' >&3
for _ in 1 2 3; do
  sleep 0.2
  head -c 50000 /dev/zero >&3 || fail "a connection was reset under what its client sends"
done
grep -qa '^HTTP/1.1 413' <&3 || fail "the answer was lost"
exec 3>&-
post /api/v1/run '{}' -H 'Origin: http://elsewhere.example'
expect 403 'other sites'
post /api/v1/run '{}' -H 'Host: elsewhere.example'
expect 403 'host'

# The live model, also after its process was killed.
job='"arguments": ["--workload", "w.txt"'
tiny="\"arguments\": [\"--model\", \"llama3-8b\", \"--gpus\", \"16\", \"--tp\", \"8\", \"--global-batch\", \"16\", \"--topology\", \"Spectrum-X:g=16\"]"
post /api/v1/live "{$tiny}"
expect 200 '"total_s":.*"opened_s"'
before=$(grep -o '"total_s":[0-9.e-]*' "$scratch/answer")
post /api/v1/live "{$tiny, \"sliders\": {\"gpu_speed\": 2}}"
expect 200 '"kept":false'
[[ $(grep -o '"total_s":[0-9.e-]*' "$scratch/answer") != "$before" ]] || fail "a slider does nothing"
post /api/v1/live "{$tiny}"
expect 200 '"kept":true'
post /api/v1/live "{$tiny, \"sliders\": {\"gpu_speed\": -1}}"
expect 400 'not between'
post /api/v1/live "{$job]}"
expect 400 'error'
for child in $(pgrep -P "$server"); do kill -9 "$child" || true; done
post /api/v1/run '{"arguments": ["topology", "check", "Spectrum-X:g=8"]}'
post /api/v1/run '{"arguments": ["topology", "check", "Spectrum-X:g=8"]}'
post /api/v1/run '{"arguments": ["topology", "check", "Spectrum-X:g=8"]}'
expect 200 '"ending":"done"'
post /api/v1/live "{$tiny}"
post /api/v1/live "{$tiny}"
expect 200 '"total_s"'

# Malformed bytes of all kinds, and still there.
for bytes in tests/fuzz/corpus/serve/*; do
  { exec 3<>"/dev/tcp/127.0.0.1/${port%/}" && cat "$bytes" >&3 && exec 3>&-; } 2>/dev/null || true
done
curl -s "${where}api/v1/about" | grep lockstep-serve >/dev/null || fail "malformed requests ended the server"

# More than may wait is refused, not queued for ever: 2 run, 2 wait.
long='{"arguments": ["collective", "--op", "alltoall", "--size", "1GiB", "--algorithm", "direct", "--topology", "Spectrum-X:g=1024"], "time_limit_s": 2}'
for i in 1 2 3 4 5 6 7 8; do
  curl -s -m 60 -o /dev/null -w '%{http_code}\n' -H 'Content-Type: application/json' -d "$long" "${where}api/v1/run" >"$scratch/code$i" &
  clients+=($!)
done
wait "${clients[@]}"
refused=$(cat "$scratch"/code? | grep -c 503 || true)
((refused >= 1 && refused <= 6)) || fail "$refused of 8 requests were refused: $(cat "$scratch"/code? | tr '\n' ' ')"

# A slow live model does not hold up others: one request waits for it, the server answers meanwhile.
slow="{\"arguments\": [\"--model\", \"gpt3-1.3b\", \"--gpus\", \"128\", \"--tp\", \"4\", \"--pp\", \"4\", \"--global-batch\", \"256\", \"--no-symmetry\", \"--topology\", \"Spectrum-X:g=128\"]}"
clients=()
for i in 1 2 3 4 5 6 7 8; do
  curl -s -m 100 -o /dev/null -w '%{http_code}\n' -H 'Content-Type: application/json' -d "$slow" "${where}api/v1/live" >"$scratch/live$i" &
  clients+=($!)
done
for _ in $(seq 200); do  # until all but two have their answers
  (($(cat "$scratch"/live? | grep -c . || true) >= 6)) && break
  sleep 0.05
done
curl -s -m 30 "${where}api/v1/about" | grep lockstep-serve >/dev/null || fail "a slow live model holds up the server"
wait "${clients[@]}"
refused=$(cat "$scratch"/live? | grep -c 503 || true)
most=6
[[ -n "${LOCKSTEP_SANITIZED:-}" ]] && most=8 # where the model itself takes longer than it may
((refused >= 1 && refused <= most)) || fail "$refused of 8 live requests were refused: $(cat "$scratch"/live? | tr '\n' ' ')"

# Told to stop, it lets what runs end.
curl -s -m 60 -o "$scratch/last" -H 'Content-Type: application/json' -d "$long" "${where}api/v1/run" &
last=$!
sleep 0.3
stop
wait $last || true
grep -q '"ending"' "$scratch/last" || fail "the last answer was lost"

start --socket "$scratch/s.sock"
[[ $(stat -c %a "$scratch/s.sock") == 700 ]] || fail "others may use the socket"
curl -s --unix-socket "$scratch/s.sock" http://lockstep/api/v1/about | grep lockstep-serve >/dev/null || fail "no answer on the socket"
"$lockstep" serve --socket "$scratch/s.sock" 2>"$scratch/err" && fail "two servers on a socket"
grep -q 'another server' "$scratch/err"
stop
[[ ! -e $scratch/s.sock ]] || fail "the socket was left behind"

"$lockstep" serve --port 0 --address 0.0.0.0 2>"$scratch/err" && fail "open to all without a token"
grep -q 'needs a token' "$scratch/err"
printf 'a-token-of-24-characters\n' >"$scratch/token"
start --port 0 --token-file "$scratch/token"
post /api/v1/run '{"arguments": ["topology", "check", "Spectrum-X:g=8"]}'
expect 401 Authorization
post /api/v1/run '{"arguments": ["topology", "check", "Spectrum-X:g=8"]}' -H 'Authorization: Bearer a-token-of-24-characters'
expect 200 done
stop

# What is served: files of the request, and those of --files. No others: not behind short flags that stand together, not by
# a file that names another, not to the live page from where the server stands.
printf 'the secret\n' >"$scratch/secret"
mkdir "$scratch/files"
cp -r tests/data/simulate/tiny.txt tests/data/plan/scale-layer "$scratch/files"
cd "$scratch"
start --port 0 --files "$scratch/files"
cd - >/dev/null
post /api/v1/run '{"arguments": ["topology", "build", "--template", "Spectrum-X", "-g", "8", "-qo'"$scratch"'/escaped"]}'
expect 403 'is not served'
[[ ! -e $scratch/escaped ]] || fail "a request has written outside of its folder"
plan='"plan", "--aceso-model", "scale-layer", "--aceso-size", "4layers", "--profiles", "'$scratch'/files/scale-layer", "--gpus-per-node", "2",
  "--nodes", "2", "--memory-limit", "1200", "--global-batch", "16", "--micro-batch", "1", "--actual", "measured.csv"'
post /api/v1/run '{"arguments": ['"$plan"'], "files": {"measured.csv": "plan,run\n1.json,'"$scratch"'/secret\n"}}'
expect 200 '"ending":"bad-input".*this file is not served'
post /api/v1/run '{"arguments": ["simulate", "--workload", "'"$scratch"'/files/tiny.txt", "--topology", "Spectrum-X:g=8", "--json"]}'
expect 200 '"ending":"done"'
post /api/v1/live '{"arguments": ["--workload", "secret", "--topology", "Spectrum-X:g=8"]}'
expect 400 'secret'
grep -q 'the secret' "$scratch/answer" && fail "the live page reads what is not served"
post /api/v1/live '{"arguments": ["--workload", "tiny.txt", "--topology", "Spectrum-X:g=8"]}'
expect 200 '"total_s"'
post /api/v1/live '{"arguments": ["--workload", "'"$scratch"'/files/tiny.txt", "--topology", "Spectrum-X:g=8"]}'
expect 200 '"total_s"'
# A word of many dashes took a stack of as many frames.
printf '{"arguments": ["plan", "%s"]}' "$(printf -- '-a%.0s' {1..50000})" >"$scratch/dashes"
post /api/v1/run "@$scratch/dashes"
expect 200 '"ending":"bad-input"'
stop
