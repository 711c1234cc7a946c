/**
 * Coracle: Kubernetes operators in TypeScript, for Node, Deno and Bun.
 *
 * This module is everything that an operator needs: the three rooms of the
 * house, each of which is an entry point too.
 *
 * - `core`: the client, informers, the queue, controllers and the operator
 * - `sources`: events from beyond the primary kind
 * - `workflows`: dependents, graphs of them, conditions, phases
 *
 * Apart from these stand `kinds` (typed descriptors of the built-in kinds),
 * `crd` (kinds of your own), `apiserver` (the embedded API server, for tests
 * and development) and `cli`.
 *
 * ## One reconcile, step by step
 *
 * 1. The API server sends a line of a watch. The line splitter finds its end,
 *    the event scanner finds type, name, version, generation, finalizers, labels
 *    and owners in one pass over the metadata. Nothing is decoded.
 * 2. The store compares the resource version with what it has, and keeps the
 *    bytes: the cache is current from here on.
 * 3. Filters look at what the scanner found: a change that no reconciler would
 *    act on, or that is the echo of an own write, ends here.
 * 4. For the primary kind the object's key goes into the queue; for other kinds
 *    a mapper says which primaries are concerned.
 * 5. The queue holds keys: a key that waits is not added twice, and a key that
 *    runs is handed out again only after its run.
 * 6. A worker takes the key, reads the newest state from the cache and decodes
 *    it. With a `cleanup` the finalizer is added before the first run; an object
 *    that is being deleted is cleaned up instead of reconciled.
 * 7. Your code runs, and returns what to write and when to come back. What it
 *    applies is seen by the next run, whether or not its event has arrived.
 * 8. The result is written by server-side apply. An error goes to `onError` and
 *    is retried with back-off; a success forgets earlier failures.
 *
 * @example An operator
 * ```ts
 * import { defineKind, Operator, patchStatus } from "@coracle/operator";
 * import { z } from "zod";
 *
 * const Boat = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Boat",
 *   spec: z.object({ seats: z.int().min(1) }),
 *   status: z.object({ ready: z.boolean() }).partial(),
 * });
 *
 * const operator = new Operator();
 * operator.register(Boat, {
 *   reconcile: (boat) => patchStatus({ ready: boat.spec.seats > 0 }),
 * });
 * if (operator.controllers.length !== 1) throw new Error("Unexpected count");
 * // await operator.run(); // until SIGTERM
 * ```
 *
 * @module
 */

export * from "./core/mod.ts";
export * from "./sources/mod.ts";
export * from "./workflows/mod.ts";
