import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import {
  type FromFile,
  type Kubeconfig,
  mergeKubeconfigs,
} from "../../../core/config/kubeconfig.ts";
import { parseKubeconfig } from "../../../core/config/kubeconfig_file.ts";

const ORIGIN = { file: "~/.kube/config", folder: "/home/jane/.kube" };

test("parseKubeconfig reads YAML and JSON, with null as absent", async () => {
  const yaml = `
kind: Config
apiVersion: v1
current-context: dev
clusters:
- name: here
  cluster: { server: "https://10.0.0.1", certificate-authority: null }
contexts:
- { name: dev, context: { cluster: here, user: jane, namespace: web } }
users: null
unknown: { to: us }
`;
  const kubeconfig = await parseKubeconfig(yaml, ORIGIN);
  assert.equal(kubeconfig["current-context"], "dev");
  assert.deepEqual(kubeconfig.clusters.get("here"), {
    value: { server: "https://10.0.0.1" },
    path: "clusters[here].cluster",
    ...ORIGIN,
  });
  assert.equal(kubeconfig.contexts.get("dev")?.value.namespace, "web");
  assert.equal(kubeconfig.users.size, 0);
  const json = await parseKubeconfig('{"current-context":"a"}', ORIGIN);
  assert.equal(json["current-context"], "a");
  assert.equal((await parseKubeconfig("", ORIGIN)).users.size, 0);
});

test("parseKubeconfig names file, field and expected type, and no value", async () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["a: [1,2", /it must be YAML: received \w+ at line 1, column 8$/],
    ["users: [{name: a, user: {token: *secret}}]", /it must be YAML/],
    ["- a", /the document must be of type object: received a list$/],
    ["kind: Pod", /"kind" must be "Config": received a string$/],
    ["users: 5", /"users" must be of type array: received a number$/],
    [
      "users: [{name: admin, user: {token: 5}}]",
      /"users\[admin\]\.user\.token" must be of type string: received a number$/,
    ],
    [
      "users: [{user: {}}]",
      /"users\[0\]\.name" must be of type string: received nothing$/,
    ],
    [
      "users: [{name: a, user: {exec: {args: secret}}}]",
      /"users\[a\]\.user\.exec\.args" must be of type array: received a string$/,
    ],
    [
      "clusters: [{name: a, cluster: {insecure-skip-tls-verify: 'yes'}}]",
      /"clusters\[a\]\.cluster\.insecure-skip-tls-verify" must be of type boolean/,
    ],
    [
      "users: [{name: a}, {name: a}]",
      /the names in "users" must differ: received "a" twice$/,
    ],
  ];
  for (const [text, message] of cases) {
    await assert.rejects(
      () => parseKubeconfig(text, ORIGIN),
      (error: Error) => {
        assert.match(
          error.message,
          /^Cannot read kubeconfig ~\/\.kube\/config: /,
        );
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      },
    );
  }
});

test("parseKubeconfig reads or refuses any document without leaking a token", async () => {
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      fc.constant("s3cret"),
      fc.integer(),
      fc.constant(null),
      fc.array(tie("any"), { maxLength: 2 }),
      fc.dictionary(
        fc.constantFrom("name", "user", "users", "token", "exec", "cluster"),
        tie("any"),
        { maxKeys: 3 },
      ),
    ),
  })).any;
  await fc.assert(fc.asyncProperty(value, async (document) => {
    try {
      await parseKubeconfig(JSON.stringify({ users: document }), ORIGIN);
    } catch (error) {
      assert.ok(error instanceof TypeError, String(error));
      assert.doesNotMatch(
        error.message.replace(/\[s3cret\]|"s3cret" twice/, ""),
        /s3cret/,
      );
    }
  }));
});

const NAMES = fc.constantFrom("a", "b", "c");

/** Kubeconfigs whose entries name their file. */
function kubeconfig(file: string): fc.Arbitrary<Kubeconfig> {
  const entries = (names: string[]): [string, FromFile<object>][] =>
    names.map((
      name,
    ) => [name, { value: { [file]: name }, file, folder: "", path: name }]);
  const part = fc.uniqueArray(NAMES).map((names) => new Map(entries(names)));
  return fc.record({
    "current-context": fc.option(NAMES, { nil: undefined }),
    clusters: part,
    contexts: part,
    users: part,
  });
}

test("mergeKubeconfigs takes each entry completely from its first file", () => {
  const files = fc.tuple(kubeconfig("1"), kubeconfig("2"), kubeconfig("3"));
  fc.assert(fc.property(files, (files) => {
    const merged = mergeKubeconfigs(files);
    const contexts = files.map((file) => file["current-context"]);
    assert.equal(
      merged["current-context"],
      contexts.find((name) => name !== undefined),
    );
    for (const part of ["clusters", "contexts", "users"] as const) {
      for (const name of ["a", "b", "c"]) {
        const first = files.find((file) => file[part].has(name));
        assert.equal(merged[part].get(name), first?.[part].get(name));
      }
    }
  }));
});

test("parseKubeconfig refuses very many values before it parses them", async () => {
  for (const value of ["a: 1\n", "- 1\n", "[a,"]) {
    await assert.rejects(
      parseKubeconfig(value.repeat(500_000), ORIGIN),
      /at most 200000 line breaks and commas: received 500000$/,
    );
  }
});

test("parseKubeconfig refuses equal keys at any depth, with the place", async () => {
  await assert.rejects(
    parseKubeconfig("a: 1\n".repeat(5_000), ORIGIN),
    /it must be YAML: received DUPLICATE_KEY at line 2, column 1$/,
  );
  await assert.rejects(
    parseKubeconfig("users: [{name: a, user: {token: b, token: c}}]", ORIGIN),
    /received DUPLICATE_KEY at line 1, column 36$/,
  );
});

test("parseKubeconfig refuses a value that contains itself", async () => {
  await assert.rejects(
    parseKubeconfig(
      "clusters: [{name: x, cluster: {extensions: [{name: e, extension: &a [*a]}]}}]",
      ORIGIN,
    ),
    /"clusters\[x\]\.cluster\.extensions\[e\]\.extension" must be a finite value: received a list$/,
  );
  await assert.rejects(parseKubeconfig("&a [*a]", ORIGIN), TypeError);
});

test("mergeKubeconfigs takes the first current context that is not empty", async () => {
  const texts = ["{}", '{"current-context":""}', '{"current-context":"b"}'];
  const files = await Promise.all(
    texts.map((text) => parseKubeconfig(text, ORIGIN)),
  );
  assert.equal(mergeKubeconfigs(files)["current-context"], "b");
});

test("parseKubeconfig refuses a document of very many levels", async () => {
  for (const level of ["[", "{a: "]) {
    await assert.rejects(
      parseKubeconfig(level.repeat(10_000), ORIGIN),
      /^SyntaxError: Cannot read kubeconfig .*: it must be YAML: received /,
    );
  }
});

test("parseKubeconfig refuses a text of more than 16 MiB", async () => {
  const text = `a: ${"b".repeat((16 << 20) - 2)}`;
  await assert.rejects(
    parseKubeconfig(text, ORIGIN),
    /it must have at most 16777216 bytes: received 16777217$/,
  );
});
