/**
 * Lamps: an operator file that `coracle dev --watch` runs, whose operator validates,
 * defaults and converts its kind, and what tests see of its admission.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { basename, dirname } from "node:path";
import type { Client, UntypedObject } from "@coracle/operator/client";
import { untyped } from "../../core/api/kind.ts";
import { GROUP, operatorFile, places } from "./dev_operator_file.ts";
import { coracle, Program } from "./program.ts";
import { writeText } from "./temporary_folder.ts";
import { until } from "./until.ts";

/** Limit for a command that is stuck, in milliseconds. */
export const WITHIN = 60_000;

/** A kind that its operator validates, defaults and converts. */
export const LAMPS = `
const Lamp = defineKind({
  group: names.group,
  version: "v2",
  kind: "Lamp",
  spec: z.object({ note: z.string().optional(), power: z.string() }),
  versions: [{
    name: "v1",
    spec: z.object({ note: z.string().optional(), watts: z.int() }),
    up: ({ spec: { watts, ...rest } }) => ({
      spec: { ...rest, power: watts + " W" },
    }),
    down: ({ spec: { power, ...rest } }) => ({
      spec: { ...rest, watts: parseInt(power) },
    }),
  }],
});
export const operator = () => {
  const operator = make(typeof options === "undefined" ? {} : options);
  operator.register(Lamp, { reconcile() {} }, {
    admission: {
      failurePolicy: "Fail",
      default(lamp) {
        lamp.spec.note ??= "one";
        return lamp;
      },
      validate: ({ spec }) => spec.power === "0 W" ? deny("one") : undefined,
    },
  });
  return operator;
};`;

/** A port that nothing uses. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** Asks for the creation of a lamp, without storing it; returns its spec. */
export async function create(
  client: Client,
  version: "v1" | "v2",
  spec: object,
): Promise<object> {
  const kind = untyped({ group: GROUP, version, kind: "Lamp" });
  const object = {
    metadata: { name: "a", namespace: "default" },
    spec,
  } as UntypedObject;
  const made = await client.create(kind, object, { dryRun: true });
  return (made as UntypedObject).spec as object;
}

/** Waits until objects are denied, defaulted and converted with a word. */
export async function admitsWith(word: string, client: Client): Promise<void> {
  let why: unknown;
  await until(`lamps are admitted with "${word}"`, async () => {
    try {
      const made = await create(client, "v2", { power: "1 W" });
      assert.deepEqual(made, { power: "1 W", note: word });
      const denied = new RegExp(`denied the request: ${word}`);
      await assert.rejects(create(client, "v2", { power: "0 W" }), denied);
      // Converted for the handlers, and back.
      const old = await create(client, "v1", { watts: 9 });
      assert.deepEqual(old, { watts: 9, note: word });
      return true;
    } catch (error) {
      why = error; // The previous operator answers.
      return false;
    }
  }, { within: WITHIN }).catch(() => {
    throw why;
  });
}

/** A file that `coracle dev --watch` runs. */
export interface WatchedFile {
  readonly dev: Program;
  /** Path of the file. */
  readonly file: string;
  readonly kubeconfig: string;
  /** Nothing of the command is left. */
  readonly isEmpty: () => boolean;
  /** Its text with another word. */
  readonly textWith: (word: string) => string;
  /** Writes it. */
  readonly write: (text: string) => void;
}

/** Runs a file with coracle dev --watch, in which "one" stands for a word. */
export function startWatched(text: string): WatchedFile {
  const { folder, kubeconfig, isEmpty } = places();
  // A timer of the file, or a socket, must not keep it from being started.
  const made = operatorFile(`setInterval(() => {}, 9_000);\n${text}`);
  const original = readFileSync(made, "utf8");
  const file = writeText(dirname(made), "op.ts", original);
  const dev = new Program(
    coracle("dev", "--watch", "--debug", "--kubeconfig", kubeconfig, file),
    { env: { TMPDIR: folder } },
  );
  return {
    dev,
    file,
    kubeconfig,
    isEmpty,
    textWith: (word: string) => original.replaceAll('"one"', `"${word}"`),
    write: (text: string) =>
      void writeText(dirname(file), basename(file), text),
  };
}
