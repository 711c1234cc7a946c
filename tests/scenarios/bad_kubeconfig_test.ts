import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { stringify } from "yaml";
import { runCommand } from "../support/child_process.ts";
import { Program, runtimeCommand } from "../support/program.ts";

/** Must never be seen anywhere. */
const SECRET = "hunter2-hunter2-hunter2";

/** A kubeconfig that would be fine if anything listened. */
function kubeconfig(
  user: Record<string, unknown>,
  cluster: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    clusters: [{
      name: "c",
      cluster: { server: "https://127.0.0.1:1", ...cluster },
    }],
    users: [{ name: "u", user }],
  };
}

/** How an exec plug-in is named; `script` is its file. */
function execUser(script: string): Record<string, unknown> {
  return {
    exec: {
      apiVersion: "client.authentication.k8s.io/v1",
      command: `./${script}`,
      interactiveMode: "Never",
    },
  };
}

/**
 * Runs an operator file with a kubeconfig. @returns Its output when it failed.
 */
async function failure(
  config: string | Record<string, unknown>,
  scripts: Readonly<Record<string, string>> = {},
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "coracle-kubeconfig-"));
  try {
    const file = join(folder, "config.yaml");
    await writeFile(
      file,
      typeof config === "string" ? config : stringify(config),
    );
    for (const [name, text] of Object.entries(scripts)) {
      await writeFile(join(folder, name), text);
      await chmod(join(folder, name), 0o755);
    }
    const { code, stdout, stderr } = await runCommand(
      [...runtimeCommand(), "examples/greeting.ts"],
      { env: { KUBECONFIG: file }, limit: 30_000 },
    );
    const said = stdout + stderr;
    assert.notEqual(code, 0, said);
    assert.notEqual(code, 124, `it did not end:\n${said}`);
    assert(!said.includes(SECRET), "it told the secret");
    return said;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test("An unknown kubeconfig context is refused with the existing ones", async () => {
  const config = {
    ...kubeconfig({ token: SECRET }),
    "current-context": "gone",
  };
  assert.match(await failure(config), /Cannot use .*config\.yaml.*here.*gone/s);
});

test("An invalid kubeconfig is refused with the place of the error", async () => {
  assert.match(
    await failure(`users: [{ token: "${SECRET}" }`),
    /Cannot read kubeconfig .*config\.yaml: it must be YAML: received /,
  );
  assert.match(
    await failure({ ...kubeconfig({}), clusters: SECRET }),
    /Cannot read kubeconfig .*config\.yaml: .*clusters/,
  );
});

test("A certificate that cannot be read is refused by name", async () => {
  const missing = kubeconfig({ token: SECRET }, {
    "certificate-authority": "missing.crt",
  });
  assert.match(
    await failure(missing),
    /Cannot use .*config\.yaml.*certificate-authority.*missing\.crt.*ENOENT/s,
  );
  const rubbish = kubeconfig({
    "client-certificate-data": btoa("rubbish"),
    "client-key-data": btoa(SECRET),
  });
  assert.match(
    await failure(rubbish),
    /Cannot use .*config\.yaml.*client-certificate-data/s,
  );
});

test("A failing exec plug-in is distinguished from one with invalid output", async () => {
  assert.match(
    await failure(kubeconfig(execUser("login")), {
      login: "#!/bin/sh\necho no luck today >&2\nexit 3\n",
    }),
    /no luck today[^]*Cannot use .*config\.yaml.*login" failed: received .*3/,
  );
  assert.match(
    await failure(kubeconfig(execUser("login")), {
      login: `#!/bin/sh\necho 'token: ${SECRET}'\n`,
    }),
    /Cannot use .*config\.yaml.*login" must print .*received /s,
  );
  assert.match(
    await failure(kubeconfig(execUser("absent"))),
    /Cannot use .*config\.yaml.*absent" is not installed/s,
  );
});

test("An operator reports an unreachable server, keeps trying and can be stopped", async () => {
  const folder = await mkdtemp(join(tmpdir(), "coracle-kubeconfig-"));
  const file = join(folder, "config.yaml");
  await writeFile(file, stringify(kubeconfig({ token: SECRET })));
  const operator = new Program([...runtimeCommand(), "examples/greeting.ts"], {
    env: { KUBECONFIG: file },
  });
  try {
    await operator.says(
      /A request failed and is retried.*Cannot reach https:\/\/127\.0\.0\.1:1/,
    );
    await operator.end("SIGTERM");
    assert(!operator.output.includes(SECRET), "it told the secret");
  } finally {
    await operator.kill();
    await rm(folder, { recursive: true, force: true });
  }
});
