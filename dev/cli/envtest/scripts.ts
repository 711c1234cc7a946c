import { shellText } from "../../testing/shell_text.ts";
import type { ProgramFlags } from "./program_flags.ts";
import { programHelp } from "./program_flags.ts";
import { ETCD_FLAGS, KUBE_APISERVER_FLAGS } from "./flag_lists.ts";

/** Version that `kube-apiserver --version` prints. */
const KUBERNETES = "v1.37.2";

/**
 * Folder, as a shell expression, in which the programs of an etcd and its API
 * server find each other: one in the temporary folder for each port of etcd.
 */
const MEETING = "${TMPDIR:-/tmp}/coracle-envtest-$(id -u)/$port";

/** Texts of the executable scripts of an envtest folder, by name. */
export function envtestScripts(options: {
  readonly folder: string;
  /** Command that runs the server; the flags of etcd follow. */
  readonly command: readonly string[];
}): Readonly<Record<string, string>> {
  const { folder, command } = options;
  return {
    etcd: script(
      ETCD_FLAGS,
      "etcd Version: 3.6.0",
      `exec ${command.map(shellText).join(" ")} "$@"`,
    ),
    "kube-apiserver": script(
      KUBE_APISERVER_FLAGS,
      `Kubernetes ${KUBERNETES}`,
      API_SERVER,
    ),
    kubectl: `${HEAD}
folder=${shellText(folder)}
IFS=:
for candidate in $PATH; do
  if [ "$candidate" != "$folder" ] && [ -x "$candidate/kubectl" ]; then
    exec "$candidate/kubectl" "$@"
  fi
done
echo 'Cannot run kubectl: there is none in the path' >&2
exit 127
`,
  };
}

const HEAD = `#!/bin/sh
# Written by: coracle envtest. Do not edit.
`;

/** Script that asks the process of etcd for an API server and ends with it. */
const API_SERVER = `refuse() {
  echo "Cannot start kube-apiserver: $1" >&2
  exit 1
}
servers=
previous=
for argument do
  case $argument in
    --etcd-servers=*) servers=\${argument#*=} ;;
    *) [ "$previous" = --etcd-servers ] && servers=$argument ;;
  esac
  previous=$argument
done
[ -n "$servers" ] || refuse '--etcd-servers is missing'
first=\${servers%%,*}
first=\${first%/}
port=\${first##*:}
meeting="${MEETING}"
tries=0
# etcd may have been started a moment ago.
until [ -O "$meeting" ] && [ -s "$meeting/pid" ] && kill -0 "$(cat "$meeting/pid")" 2>/dev/null; do
  tries=$((tries + 1))
  if [ "$tries" -gt 100 ]; then
    refuse "no etcd of coracle envtest listens there: received --etcd-servers=$servers"
  fi
  sleep 0.1
done
umask 077
mkfifo "$meeting/$$.log" || refuse "$meeting must be writable"
printf '%s\\0' "$@" > "$meeting/$$.new"
mv "$meeting/$$.new" "$meeting/$$.args"
while IFS= read -r line; do
  printf '%s\\n' "$line" >&2
done < "$meeting/$$.log"
exit 1
`;

function script(flags: ProgramFlags, version: string, body: string): string {
  return `${HEAD}
for argument do
  case $argument in
    -h | --help)
      cat << 'END'
${programHelp(flags)}
END
      exit 0
      ;;
    --version | --version=*)
      echo '${version}'
      exit 0
      ;;
  esac
done
${body}
`;
}
