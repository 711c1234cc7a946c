/**
 * Embedded API server with many kinds, in a process of its own:
 * `kinds_server_process.ts KINDS OBJECTS 1|2`, the version of HTTP last. Prints
 * its kubeconfig as a line of JSON when all objects exist; ends with its input.
 *
 * @module
 */
import process from "node:process";
import { ApiServer } from "@coracle/dev/apiserver";
import { untyped } from "@coracle/operator/client";
import { CRD_KIND } from "../../core/crd/crd_object.ts";
import { until } from "../../tests/support/until.ts";
import { manyKind, manyKindCrd } from "./many_kinds.ts";

const [kinds = 0, objects = 0, version] = process.argv.slice(2).map(Number);
const server = await ApiServer.start({
  http2: version === 2,
  establishingDelay: 0,
  seed: 1,
});
const { client } = server;
const definitions = untyped(CRD_KIND);
const TEXT = "The quick brown fox jumps over the lazy dog. ".repeat(8);
for (let index = 0; index < kinds; index++) {
  await client.create(definitions, { ...manyKindCrd(index) });
}
for (let index = 0; index < kinds; index++) {
  await until(
    "the kind is served",
    () => client.list(untyped(manyKind(index))).catch(() => undefined),
  );
}
for (let index = 0; index < kinds; index++) {
  const kind = untyped(manyKind(index));
  for (let number = 0; number < objects; number++) {
    await client.create(kind, {
      metadata: { namespace: "default", name: `object-${number}` },
      spec: { number, text: `${index}/${number}: ${TEXT}`, parts: ["a", "b"] },
    });
  }
}
process.stdout.write(`${JSON.stringify(server.kubeconfig)}\n`);
process.stdin.resume().on("end", async () => {
  await server.stop();
  process.exit();
});
