import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test as nodeTest } from "node:test";
import type { CredentialSource, Logger } from "@coracle/operator/client";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";
import { Client } from "../../../core/client/client.ts";
import { credentialSource } from "../../../core/config/cluster_config.ts";
import {
  ExecCredentials,
  execPlugin,
} from "../../../core/config/exec_credentials.ts";
import {
  configFromText,
  loadConfig,
} from "../../../core/config/load_config.ts";
import { ConfigMap } from "../../../core/kinds/core_v1.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";
import { recordedWarnings } from "../../support/recorded_warnings.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";
import { until } from "../../support/until.ts";

const FOLDER = temporaryFolder();
const VERSION = "client.authentication.k8s.io/v1";
const AUTHORITY = createAuthority({ commonName: "test-authority" });
const JANE = issueCertificate(AUTHORITY, {
  commonName: "jane",
  usage: "client",
});

/** Test of a plugin, which is a script of the shell; Windows has none. */
function test(title: string, body: () => void | Promise<void>): void {
  const skip = process.platform === "win32" && "its plugins are shell scripts";
  void nodeTest(title, { skip }, body);
}

let scripts = 0;

interface Plugin {
  readonly source: CredentialSource;
  /** Input of each run, in order. */
  runs(): readonly string[];
}

/** Loads a kubeconfig whose exec plugin is a shell script. */
async function plugin(
  script: string,
  parts: {
    readonly exec?: Record<string, unknown>;
    readonly cluster?: Record<string, unknown>;
    readonly clock?: VirtualClock;
    readonly logger?: Logger;
  } = {},
): Promise<Plugin> {
  const folder = join(FOLDER, String(++scripts));
  const log = join(folder, "log");
  const file = writeText(
    folder,
    "plugin.sh",
    `#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" >> ${log}\n${script}\n`,
  );
  chmodSync(file, 0o755);
  const kubeconfig = writeText(
    folder,
    "config",
    JSON.stringify({
      "current-context": "dev",
      contexts: [{ name: "dev", context: { cluster: "c", user: "jane" } }],
      clusters: [{
        name: "c",
        cluster: { server: "https://10.0.0.1", ...parts.cluster },
      }],
      users: [{
        name: "jane",
        user: {
          exec: {
            apiVersion: VERSION,
            command: "./plugin.sh",
            interactiveMode: "Never",
            ...parts.exec,
          },
        },
      }],
    }),
  );
  const { credentials } = await loadConfig({
    kubeconfig,
    environment: {},
    clock: parts.clock,
    logger: parts.logger,
  });
  return {
    source: credentialSource(credentials),
    runs: () =>
      existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [],
  };
}

/** Whether a process runs; one that has ended may wait for its parent. */
function isRunning(id: number): boolean {
  try {
    process.kill(id, 0);
  } catch {
    return false;
  }
  try {
    return !/\) Z /.test(readFileSync(`/proc/${id}/stat`, "utf8"));
  } catch {
    return true;
  }
}

/** Command that prints a credential. */
function prints(status: Record<string, unknown>, kind = {}): string {
  const credential = {
    kind: "ExecCredential",
    apiVersion: VERSION,
    status,
    ...kind,
  };
  return `printf '%s' '${JSON.stringify(credential)}'`;
}

test("An exec plugin runs once for concurrent requests, with its arguments", async () => {
  // Its variables win over those of the process.
  const env = [
    { name: "COLOR", value: "blue" },
    { name: "PATH", value: `${process.env["PATH"]}:/plugin` },
    { name: "KUBERNETES_EXEC_INFO", value: "not this one" },
    { name: "HOME" }, // Empty, as for kubectl.
  ];
  const { source, runs } = await plugin(
    `sleep 0.1; printf '{"kind":"ExecCredential","apiVersion":"${VERSION}","status":{"token":"%s-%s-%s-%s%s"}}' "$1" "$2" "$COLOR" "${"${PATH##*:}"}" "$HOME"`,
    { exec: { args: ["a", "b c"], env } },
  );
  assert.equal(runs().length, 0);
  const all = await Promise.all(
    Array.from({ length: 20 }, () => source.current()),
  );
  assert.equal(all[0]?.token, "a-b c-blue-/plugin");
  assert.equal(new Set(all).size, 1);
  await source.current();
  assert.equal(runs().length, 1);
  assert.equal(JSON.parse(runs()[0] ?? "").kind, "ExecCredential");
});

test("An exec plugin receives the cluster information on request", async () => {
  const cluster = {
    "certificate-authority-data": btoa(AUTHORITY.certificate),
    "tls-server-name": "api.internal",
    extensions: [
      { name: "client.authentication.k8s.io/exec", extension: { id: 7 } },
      { name: "other", extension: {} },
    ],
  };
  const status = prints({ token: "t" });
  const told = await plugin(status, {
    cluster,
    exec: { provideClusterInfo: true },
  });
  await told.source.current();
  assert.deepEqual(JSON.parse(told.runs()[0] ?? ""), {
    kind: "ExecCredential",
    apiVersion: VERSION,
    spec: {
      interactive: false,
      cluster: {
        server: "https://10.0.0.1",
        "tls-server-name": "api.internal",
        "certificate-authority-data": btoa(AUTHORITY.certificate),
        config: { id: 7 },
      },
    },
  });
  const untold = await plugin(status, { cluster });
  await untold.source.current();
  assert.deepEqual(JSON.parse(untold.runs()[0] ?? "").spec, {
    interactive: false,
  });
});

test("An exec plugin may return a certificate, in v1beta1 without a mode", async () => {
  const { source } = await plugin(
    prints({
      clientCertificateData: JANE.certificate.replaceAll("\n", "\\n"),
      clientKeyData: JANE.key.replaceAll("\n", "\\n"),
    }, { apiVersion: "client.authentication.k8s.io/v1beta1" }).replaceAll(
      "\\\\n",
      "\\n",
    ),
    {
      exec: {
        apiVersion: "client.authentication.k8s.io/v1beta1",
        interactiveMode: undefined,
      },
    },
  );
  const credential = await source.current();
  assert.equal(credential.certificate, JANE.certificate);
  assert.equal(credential.key, JANE.key);
});

test("An exec plugin runs again before its credential expires, and after a 401", async () => {
  const clock = new VirtualClock();
  const expires = (minutes: number) =>
    new Date(clock.wallTime() + minutes * 60_000).toISOString();
  const { source, runs } = await plugin(
    prints({ token: "t", expirationTimestamp: expires(30) }),
    { clock },
  );
  const first = await source.current();
  await clock.advance(29 * 60_000 - 1);
  assert.equal(await source.current(), first);
  await clock.advance(1);
  const second = await source.current();
  assert.notEqual(second, first);
  assert.equal(runs().length, 2);
  // Another request was refused with the first one; the second is newer already.
  assert.equal(await source.refresh(first), second);
  const third = await Promise.all([
    source.refresh(second),
    source.refresh(second),
  ]);
  assert.equal(third[0], third[1]);
  assert.equal(runs().length, 3);
});

test("A short-lived credential is used for nine tenths of its life", async () => {
  const clock = new VirtualClock();
  const { source, runs } = await plugin(
    prints({
      token: "t",
      expirationTimestamp: new Date(clock.wallTime() + 50_000).toISOString(),
    }),
    { clock },
  );
  const first = await source.current();
  await clock.advance(44_999);
  assert.equal(await source.current(), first);
  assert.equal(runs().length, 1);
  await clock.advance(1);
  assert.notEqual(await source.current(), first);
});

test("A credential is used until it expires if its plugin fails", async () => {
  const clock = new VirtualClock();
  const end = new Date(clock.wallTime() + 600_000).toISOString();
  const { source, runs } = await plugin(
    `[ $(wc -l < $(dirname $0)/log) -gt 1 ] && exit 3; ${
      prints({ token: "t", expirationTimestamp: end })
    }`,
    { clock },
  );
  const first = await source.current();
  await clock.advance(590_000);
  assert.equal(await source.current(), first);
  assert.equal(await source.current(), first);
  assert.equal(runs().length, 2);
  await clock.advance(10_000);
  await assert.rejects(
    () => source.current(),
    /failed: received exit code 3/,
  );
});

test("An exec plugin whose first run failed runs again for the next request", async () => {
  const { source, runs } = await plugin(
    `[ $(wc -l < $(dirname $0)/log) -gt 1 ] || exit 3; ${
      prints({ token: "t" })
    }`,
  );
  await assert.rejects(() => source.current(), /received exit code 3/);
  assert.equal((await source.current()).token, "t");
  assert.equal(runs().length, 2);
});

test("A credential that expires while its plugin fails is not used", async () => {
  const clock = new VirtualClock();
  const expiry = new Date(clock.wallTime() + 600_000).toISOString();
  let runs = 0;
  const credentials = new ExecCredentials(
    {
      origin: "users[0].user.exec",
      apiVersion: VERSION,
      command: "plugin",
      args: [],
      env: {},
      installHint: "",
      interactiveMode: "Never",
    },
    {
      clock,
      async run() {
        if (++runs > 1) {
          await clock.advance(10_000);
          throw new Error("the plugin failed");
        }
        return JSON.stringify({
          kind: "ExecCredential",
          apiVersion: VERSION,
          status: { token: "t", expirationTimestamp: expiry },
        });
      },
    },
  );
  const first = await credentials.current();
  await clock.advance(580_000);
  assert.equal(await credentials.current(), first, "it has 10 s left");
  assert.equal(await credentials.current(), first);
  assert.equal(runs, 2, "the pause begins when the plugin has failed");
  await clock.advance(5_000);
  await assert.rejects(() => credentials.current(), /the plugin failed/);
});

test("Errors of an exec plugin name it and quote nothing of its output", async () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["exit 7", /failed: received exit code 7$/],
    [`${prints({ token: "s3cret" })}; exit 8`, /received exit code 8$/],
    ["kill -9 $$", /failed: received SIGKILL$/],
    [
      "echo s3cret",
      /an ExecCredential as JSON or YAML: the document must be of type object: received a string$/,
    ],
    ["true", /the document must be of type object: received nothing$/],
    ["echo '[\"s3cret\"]'", /must be of type object: received a list$/],
    [
      "echo '{s3cret: [}'",
      /as JSON or YAML: received \w+ at line 1, column \d+$/,
    ],
    ["echo '{s3cret, s3cret}'", /received DUPLICATE_KEY at line 1, column 10$/],
    [
      prints({ token: "s3cret" }, { kind: "Secret" }),
      /"kind" must be "ExecCredential": received a string$/,
    ],
    [
      prints({ token: "s3cret" }, {
        apiVersion: "client.authentication.k8s.io/v1beta1",
      }),
      /"apiVersion" must be "client\.authentication\.k8s\.io\/v1": received a string$/,
    ],
    [
      prints({}, { status: null }),
      /"status" must be of type object: received nothing$/,
    ],
    [prints({}), /a token or a certificate: received neither$/],
    [prints({ token: "" }), /a token or a certificate: received neither$/],
    [
      prints({
        clientCertificateData: JANE.certificate,
        clientKeyData: AUTHORITY.key,
      }),
      /status.clientKeyData: it must be the key of the client certificate/,
    ],
    [
      prints({ token: 5 }),
      /"status.token" must be of type string: received a number$/,
    ],
    [
      prints({ clientCertificateData: "s3cret" }),
      /certificate and key, or neither: received one of them$/,
    ],
    [
      prints({ clientKeyData: "s3cret" }),
      /certificate and key, or neither: received one of them$/,
    ],
    [
      prints({ clientCertificateData: "s3cret", clientKeyData: "s3cret" }),
      /status.clientCertificateData: it must contain certificates in PEM/,
    ],
    [
      prints({ token: "s3cret", expirationTimestamp: "soon" }),
      /"status.expirationTimestamp" must be a time, such as .*: received a string$/,
    ],
    // Without a zone it would be another time on another machine.
    [
      prints({ token: "s3cret", expirationTimestamp: "2026-01-31T12:00:00" }),
      /"status.expirationTimestamp" must be a time, such as .*: received a string$/,
    ],
    ["yes s3cret", /printed more than 1048576 bytes$/],
  ];
  for (const [script, message] of cases) {
    const { source } = await plugin(script);
    await assert.rejects(() => source.current(), (error: Error) => {
      assert.match(
        error.message,
        /^Cannot use .*config: "users\[jane\]\.user\.exec"/,
      );
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /s3cret/);
      return true;
    });
  }
});

test("An exec plugin that hangs is killed after a minute, with its children", async () => {
  const clock = new VirtualClock();
  const file = join(FOLDER, "children");
  const { source, runs } = await plugin(
    `sleep 600 & echo "$$ $!" > ${file}.new; mv ${file}.new ${file}; wait`,
    { clock },
  );
  const waiting = source.current();
  const outcome = assert.rejects(
    waiting,
    /did not end within 60000 ms$/,
  );
  await until("its child runs", () => existsSync(file));
  const left = new Set(readFileSync(file, "utf8").trim().split(" "));
  try {
    await clock.advance(60_000);
    await outcome;
    assert.equal(clock.pendingTimers, 0);
    assert.equal(runs().length, 1);
    await until("both have ended", () => {
      for (const id of left) if (!isRunning(Number(id))) left.delete(id);
      return left.size === 0;
    });
  } finally {
    for (const id of left) process.kill(Number(id), "SIGKILL");
  }
});

test("The signal of a request ends its wait for an exec plugin, not the plugin", async () => {
  const go = join(FOLDER, "go");
  const { source, runs } = await plugin(
    `until [ -e ${go} ]; do sleep 0.01; done
echo '{"apiVersion":"${VERSION}","kind":"ExecCredential","status":{"token":"late"}}'`,
  );
  const controller = new AbortController();
  const client = new Client({
    server: "https://127.0.0.1:1",
    credentials: source,
  });
  const listed = client.list(ConfigMap, { signal: controller.signal });
  await until("it runs", () => runs().length === 1);
  const others = source.current();
  controller.abort(new Error("enough"));
  await assert.rejects(listed, /enough/);
  await assert.rejects(source.refresh({}, controller.signal), /enough/);
  writeText(FOLDER, "go", "");
  assert.equal((await others).token, "late");
  assert.equal(runs().length, 1);
  await client.close();
});

test("An exec plugin that is not installed is reported with its hint", async () => {
  const { source } = await plugin("", {
    exec: { command: "no-such-program", installHint: "See the manual" },
  });
  await assert.rejects(
    () => source.current(),
    /"no-such-program" is not installed \(See the manual\): received ENOENT$/,
  );
});

test("A hint, a command and names from a kubeconfig cannot control a terminal", async () => {
  const { source } = await plugin("", {
    exec: {
      command: "no\u001b[2Jprogram",
      installHint: "See\n  the \u001b[31mmanual\u0007 \u009b1m\u202e",
    },
  });
  await assert.rejects(() => source.current(), ({ message }: Error) => {
    assert.match(
      message,
      /"no\\u\{1b\}\[2Jprogram" is not installed \(See the \\u\{1b\}\[31mmanual\\u\{7\} \\u\{9b\}1m\\u\{202e\}\): received ENOENT$/,
    );
    return true;
  });
  await assert.rejects(
    configFromText('{"users":[{"name":"\\u001b[2J","user":5}]}'),
    /"users\[\\u\{1b\}\[2J\]\.user" must be of type object/,
  );
});

test("Errors of an exec plugin quote none of its arguments and variables", async () => {
  const nul: readonly (readonly [object, RegExp])[] = [
    [{ args: ["s3cret\0"] }, /exec\.args\[0\]" must not contain a NUL/],
    [{ command: "s3cret\0" }, /exec\.command" must not contain a NUL/],
    [
      { env: [{ name: "A", value: "s3cret\0" }] },
      /exec\.env\[A\]\.value" must not contain a NUL character: received a string$/,
    ],
  ];
  for (const [exec, message] of nul) {
    await assert.rejects(plugin("", { exec: { ...exec } }), (error: Error) => {
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /s3cret/);
      return true;
    });
  }
  // More than any system allows.
  const { source } = await plugin("", {
    exec: { args: ["s3cret".repeat(1_000_000)] },
  });
  await assert.rejects(() => source.current(), (error: Error) => {
    assert.match(
      error.message,
      /plugin\.sh" cannot be executed: received \w+$/,
    );
    assert.doesNotMatch(`${error.stack}`, /s3cret/);
    return true;
  });
});

test("An exec plugin may print its credential as YAML", async () => {
  const { source } = await plugin(`cat <<'END'
# A comment
apiVersion: ${VERSION}
kind: ExecCredential
status:
  token: from-yaml
  clientKeyData: null
  expirationTimestamp: 2100-01-31T12:00:00+01:00
END`);
  assert.equal((await source.current()).token, "from-yaml");
});

test("A credential that has expired already runs its plugin once a request", async () => {
  const clock = new VirtualClock();
  const { lines, logger } = recordedWarnings();
  const expired = new Date(clock.wallTime() - 300_000).toISOString();
  const { source, runs } = await plugin(
    prints({ token: "t", expirationTimestamp: expired }),
    { clock, logger },
  );
  // The client asks twice a request: for the header and for the connection.
  const ask = async () => {
    const first = await source.current();
    assert.equal(await source.current(), first);
    return first;
  };
  await ask();
  assert.equal(runs().length, 1);
  await clock.advance(5_000);
  const second = await ask();
  assert.equal(runs().length, 2);
  assert.notEqual(await source.refresh(second), second, "it was refused");
  assert.equal(runs().length, 3);
  assert.equal(lines.length, 1, "it is said once");
  assert.match(lines[0] ?? "", /credential that expired 300 s ago: the clock/);
  assert.match(lines[0] ?? "", /users\[jane\]\.user\.exec/);
});

test("An exec plugin that may not be executed is reported without the hint", async () => {
  const command = writeText(FOLDER, "plain", "text");
  const { source } = await plugin("", {
    exec: { command, installHint: "See the manual" },
  });
  await assert.rejects(
    () => source.current(),
    /plain" cannot be executed: received EACCES$/,
  );
});

test("An exec plugin's output is read to its end, also that of its children", async () => {
  const credential = {
    kind: "ExecCredential",
    apiVersion: VERSION,
    status: { token: "|" },
  };
  const [head, tail] = JSON.stringify(credential).split("|");
  // The character is cut in two.
  const { source } = await plugin(
    `printf '%s\\303' '${head}'; (sleep 0.1; printf '\\251%s' '${tail}') &`,
  );
  assert.equal((await source.current()).token, "é");
});

test("An exec plugin has the variables of the process", async () => {
  process.env["CORACLE_EXEC_TEST"] = "ours";
  try {
    const text = prints({ token: "|" }).replace("|", "%s");
    const { source } = await plugin(
      `${text.replace("printf '%s' ", "printf ")} "$CORACLE_EXEC_TEST"`,
    );
    assert.equal((await source.current()).token, "ours");
  } finally {
    delete process.env["CORACLE_EXEC_TEST"];
  }
});

test("An exec plugin may print null for what it does not have", async () => {
  const { source } = await plugin(prints({
    token: "t",
    clientCertificateData: null,
    clientKeyData: null,
    expirationTimestamp: null,
  }));
  assert.equal((await source.current()).token, "t");
});

test("An interactive exec plugin needs a terminal", async () => {
  const { source } = await plugin(prints({ token: "t" }), {
    exec: { interactiveMode: "Always" },
  });
  await assert.rejects(
    () => source.current(),
    /needs a terminal$/,
  );
});

test("A kubeconfig with an invalid exec field is refused", async () => {
  const cases: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [
      { command: undefined },
      /"command" must be the program to run: received undefined$/,
    ],
    [
      { apiVersion: "client.authentication.k8s.io/v1alpha1" },
      /"apiVersion" must be .*v1 or .*v1beta1: received ".*v1alpha1"$/,
    ],
    [
      { interactiveMode: undefined },
      /"interactiveMode" must be Never, IfAvailable, Always: received undefined$/,
    ],
    [{ interactiveMode: "Maybe" }, /received "Maybe"$/],
  ];
  for (const [exec, message] of cases) {
    await assert.rejects(() => plugin("", { exec }), message);
  }
});

test("An exec plugin receives its own extension and the proxy of the cluster", () => {
  const origin = { file: "config", folder: FOLDER, path: "x" };
  const extension = (name: string) => ({ name, extension: { of: name } });
  const { cluster } = execPlugin({
    ...origin,
    value: {
      exec: {
        apiVersion: VERSION,
        command: "login",
        interactiveMode: "Never",
        provideClusterInfo: true,
      },
    },
  }, {
    ...origin,
    value: {
      server: "https://here",
      "insecure-skip-tls-verify": true,
      "proxy-url": "http://proxy",
      extensions: [
        extension("other"),
        extension("client.authentication.k8s.io/exec"),
      ],
    },
  });
  assert.deepEqual(cluster?.["config"], {
    of: "client.authentication.k8s.io/exec",
  });
  assert.equal(cluster?.["proxy-url"], "http://proxy");
  assert.equal(cluster?.["insecure-skip-tls-verify"], true);
});
