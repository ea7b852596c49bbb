#!/usr/bin/env bash
# The provider's suite against sim/ec2 and against moto_server, an AWS emulator
# that nobody here wrote, and the same requests to both with their answers
# compared field by field. moto_server listens on a free port of the loopback
# interface and is stopped at the end, whatever happens.
set -euo pipefail
cd "$(dirname "$0")/.."

if command -v cfn-lint >/dev/null; then
	echo "test-aws: cfn-lint aws/cloudformation.yaml"
	cfn-lint aws/cloudformation.yaml
else
	echo "test-aws: cfn-lint is not installed (pip install cfn-lint): the template is not linted"
fi

go test -count=1 -v -run '^TestProvider$|^TestDirectIsTheSame$|^TestStack$' ./internal/aws/awsapi

if ! command -v moto_server >/dev/null; then
	echo "test-aws: moto_server is not installed (pip install 'moto[server]==5.2.1'): left out"
	[ "${CI:-}" != true ]
	exit
fi

log=$(mktemp)
server=
stop() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
	fi
	rm -f "$log"
}
trap stop EXIT
trap 'exit 130' INT TERM

# Port 0 lets the system choose; the server says which one it got.
moto_server -H 127.0.0.1 -p 0 >"$log" 2>&1 &
server=$!
url=
for _ in $(seq 150); do
	url=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$log" | head -1 || true)
	[ -n "$url" ] && break
	if ! kill -0 "$server" 2>/dev/null; then break; fi
	sleep 0.2
done
if [ -z "$url" ]; then
	echo "test-aws: moto_server did not start:"
	cat "$log"
	exit 1
fi

echo "test-aws: moto_server at $url"
KARPENTER_TEST_EC2_ENDPOINT=$url KARPENTER_TEST_EC2_GAPS=moto \
	go test -count=1 -v -run '^TestProviderOnEndpoint$|^TestSameAnswers$|^TestStackDeployed$' ./internal/aws/awsapi
