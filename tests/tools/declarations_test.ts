import assert from "node:assert/strict";
import { test } from "node:test";
import { neededDeclarations } from "../../tools/declarations.ts";

const FILES: Readonly<Record<string, string>> = {
  "mod.d.ts": `/**
 * A package.
 *
 * @module
 */
export { start, type Options as StartOptions } from "./start.ts";
export * from "./names.ts";
`,
  "internal.d.ts": `export { type Engine } from "./engine.ts";
export { tune } from "./engine.ts";
`,
  "start.d.ts": `import { Buffer } from "node:buffer";
import { type Engine, type Unused } from "./engine.ts";
import type { Clock as Time } from "./clock.ts";
/** Options of {@linkcode start}. */
export interface Options {
    /** Size in bytes. */
    readonly size: number;
    readonly time: Time;
}
/** Starts with a text. */
export declare function start(text: "Unneeded", options: Options): Engine;
/** Starts with bytes. */
export declare function start(bytes: Uint8Array): Engine;
/** Nobody names it. */
export interface Unneeded {
    readonly bytes: Buffer;
}
export {};
`,
  "engine.d.ts": `import type { Gear } from "./gear.ts";
/** Runs. */
export declare class Engine {
    #private;
    /** Gear that is in. */
    readonly gear: Gear;
}
export interface Unused {
    readonly engine: Engine;
}
/** Tunes an engine. */
export declare function tune(engine: Engine): void;
`,
  "gear.d.ts": `/** Gear. */
export interface Gear {
    /** Number of the gear. */
    readonly number: number;
}
`,
  "clock.d.ts": `/** Clock. */
export interface Clock {
    now(): number;
}
`,
  "names.d.ts": `/** Names. */
export type Name =
/** The first one. */
{
    readonly a: string;
}
/** The others. */
 | {
    readonly b: string;
};
`,
};

function needed(
  files: Readonly<Record<string, string>> = FILES,
  reexported?: readonly string[],
) {
  return neededDeclarations({
    read: (file) => files[file],
    entryPoints: ["mod.d.ts", "internal.d.ts"],
    undocumented: ["internal.d.ts"],
    ...(reexported && { reexported }),
  });
}

test("neededDeclarations keeps what entry points export, and what that names", () => {
  const kept = needed();
  assert.deepEqual(
    [...kept.keys()].sort(),
    Object.keys(FILES).sort(),
  );
  assert.equal(kept.get("mod.d.ts"), FILES["mod.d.ts"]);
  assert.equal(kept.get("names.d.ts"), FILES["names.d.ts"]);
  const start = kept.get("start.d.ts") ?? "";
  assert.match(start, /^import type \{ Engine \} from ".\/engine.ts";$/m);
  assert.match(start, /^import type \{ Clock as Time \} from/m);
  assert.match(start, /start\(text: [^]* start\(bytes: [^]*export \{\};\n$/);
});

test("neededDeclarations leaves out what no entry point leads to", () => {
  const kept = needed();
  assert.doesNotMatch(
    kept.get("start.d.ts") ?? "",
    /interface Unneeded|Buffer/,
  );
  assert.doesNotMatch(kept.get("engine.d.ts") ?? "", /Unused/);
  const alone = needed({ ...FILES, "internal.d.ts": "export {};\n" });
  assert.doesNotMatch(alone.get("engine.d.ts") ?? "", /tune/);
  const without = needed({
    ...FILES,
    "start.d.ts": "export declare function start(): void;\n" +
      "export interface Options {\n}\n",
  });
  assert.deepEqual([...without.keys()].sort(), [
    "engine.d.ts",
    "gear.d.ts",
    "internal.d.ts",
    "mod.d.ts",
    "names.d.ts",
    "start.d.ts",
  ]);
});

test("neededDeclarations keeps docs where a program can see what they document", () => {
  const kept = needed();
  assert.match(
    kept.get("start.d.ts") ?? "",
    /Size in bytes[^]*Starts with a text[^]*Starts with bytes/,
  );
  // What an export names directly is shown with it.
  assert.match(kept.get("engine.d.ts") ?? "", /Runs\.[^]*Gear that is in\./);
  assert.doesNotMatch(kept.get("engine.d.ts") ?? "", /Tunes/);
  assert.equal(
    kept.get("gear.d.ts"),
    "export interface Gear {\n    readonly number: number;\n}\n",
  );
});

test("neededDeclarations keeps docs of what another package exports", () => {
  assert.match(needed(FILES, ["tune"]).get("engine.d.ts") ?? "", /Tunes/);
  assert.doesNotMatch(
    needed(FILES, ["other"]).get("engine.d.ts") ?? "",
    /Tunes/,
  );
});

test("neededDeclarations refuses a statement that it does not know", () => {
  assert.throws(
    () => needed({ ...FILES, "names.d.ts": "export default 1;\n" }),
    /^Error: Cannot select declarations of names.d.ts: .* received export default/,
  );
  assert.throws(
    () => needed({ "mod.d.ts": FILES["mod.d.ts"] ?? "" }),
    /^Error: Cannot select declarations: there is no file names.d.ts/,
  );
});
