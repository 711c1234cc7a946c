import { ApiServer } from "@coracle/dev/apiserver";
import { installCrd } from "@coracle/operator/crd";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { SecretTexts } from "@coracle/operator/internal";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { after, test } from "node:test";
import {
  planJson,
  planMarkdown,
  planText,
} from "../../../dev/cli/plan_text.ts";
import { planPage } from "../../../dev/cli/window/plan_page.ts";
import { planFor, readThrough } from "./cluster_copy.ts";
import { Site } from "./fixtures/site.ts";

/** Values of a Secret: one begins with another, one is a number, one has lines. */
const VALUES = {
  pin: "73105529",
  short: "alpha-marker",
  long: "alpha-marker-tail-8c1e",
  lines: 'first-marker\nsecond-marker "x"',
};
/** What nothing may show. */
const SECRETS =
  /73105529|-marker|tail-8c1e|bWFya2Vy|1hcmtlc|tYXJrZX|NzMxMDU1Mj|packed-copy/;

const server = await ApiServer.start({ port: false });
after(() => server.stop());
const { client, transport } = server;
const namespace = "default";
await installCrd(client, Site);
for (const name of ["alpha", "bravo"]) {
  const metadata = { namespace, name };
  await client.create(Site, { metadata, spec: { html: `<p>${name}` } });
}
const bank = { apiVersion: "v1", kind: "Secret", stringData: VALUES };
await client.apply(Secret, {
  metadata: {
    namespace,
    name: "bank",
    annotations: {
      "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify(bank),
      "kapp.k14s.io/original": JSON.stringify(bank),
      "objectset.rio.cattle.io/applied": "packed-copy",
    },
  },
  stringData: VALUES,
});
await client.create(ConfigMap, {
  metadata: { namespace, name: "alpha-copy" },
  data: { url: `https://user:${VALUES.long}@old.example.com/` },
});
const report = await planFor(transport, "site_leaks", { duration: 600_000 });

test("plan: no form of it has a secret, whatever shows it", () => {
  const forms = {
    json: planJson(report, 2),
    text: planText(report, { show: ["all"] }),
    markdown: planMarkdown(report, { show: ["all"], operator: "a.ts" }),
    page: planPage(report),
  };
  for (const [name, form] of Object.entries(forms)) {
    const [found] =
      new RegExp(`.{0,60}(?:${SECRETS.source}).{0,20}`).exec(form) ?? [];
    assert.equal(found, undefined, name);
    assert.match(form, /\(hidden\)/);
  }
  const { changes, events, failures, fetches } = report;
  const made = changes.filter(({ kind }) => kind === "ConfigMap");
  assert.deepEqual(made.map(({ name }) => name), ["alpha-copy", "bravo-copy"]);
  assert.deepEqual(events.map(({ message }) => message).slice(0, 1), [
    "It is (hidden), then (hidden)",
  ]);
  assert.deepEqual(failures.map(({ error }) => error).sort(), [
    "(hidden) of (hidden)",
    "(hidden)(hidden)",
  ]);
  assert.deepEqual(fetches.map(({ request }) => request), [
    "GET https://example.com/bot(hidden)/send",
  ]);
});

test("snapshot: no value of a Secret, and no copy of one", async () => {
  const snapshot = await readThrough(transport, {
    kinds: ["ConfigMap", "Secret"].map((kind) => ({ group: "", kind })),
    hidesSecrets: true,
  });
  const text = JSON.stringify([...snapshot.objects()]);
  assert.match(text, /"name":"bank"/);
  assert.match(text, /"url":"https:\/\/user:digest-\w+@old\.example\.com\/"/);
  assert.equal(SECRETS.exec(text)?.[0], undefined);
});

test("plan: a kind that the operator reads and its snapshot lacks is noted", async () => {
  const snapshot = await readThrough(transport, {
    kinds: [{ group: undefined, kind: "Site" }],
  });
  const { notes } = await planFor(transport, "site_leaks", {
    duration: 60_000,
    read: () => Promise.resolve(snapshot),
  });
  assert.ok(
    notes.includes(
      "The operator asks for ConfigMap, Secret: such objects were not read, and do not exist for it.",
    ),
    notes.join("\n"),
  );
});

test("secret texts: no form in which a value is copied is shown", () => {
  const secrets = new SecretTexts();
  const key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC";
  const pem = `-----BEGIN KEY-----\n${key}\n-----END KEY-----\n`;
  const odd = "a&b<c>/d e?\u00e9";
  const long = "x-long-".repeat(300);
  const bytes = String.fromCharCode(250, 251, 0, 1, 2, 253, 254);
  secrets.add({
    data: { six: btoa("sixsix"), bytes: btoa(bytes) },
    stringData: { pem, odd, long },
  });
  secrets.add({ data: { odd: Buffer.from(odd).toString("base64") } });
  const goJson = odd.replaceAll(
    /[&<>]/g,
    (one) => `\\u00${one.charCodeAt(0).toString(16)}`,
  );
  const copies = [
    "sixsix",
    btoa("sixsix"),
    bytes,
    key,
    odd,
    goJson,
    goJson.replaceAll("\\", "\\\\"),
    odd.replace("\u00e9", "\\u00e9"),
    encodeURIComponent(odd),
    new URLSearchParams({ "": odd }).toString().slice(1),
    Buffer.from(odd).toString("latin1"),
    long.slice(0, 1_024),
  ];
  for (const copy of copies) {
    assert.equal(secrets.hide(`it is ${copy}`), "it is (hidden)");
  }
  for (const other of ["sixsi", "it is x-long-", "-----BEGIN KEY----- of it"]) {
    assert.equal(secrets.hide(other), other);
  }
});
