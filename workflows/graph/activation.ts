import type { KubernetesObject } from "../../core/api/object.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import type { EventSource } from "../../core/controller/event_source.ts";
import { crdName, CrdPresence } from "./crd_presence.ts";
import { GatedSource } from "./gated_source.ts";
import type { WorkflowNode } from "./node.ts";
import {
  type ActiveContext,
  asVerdict,
  type Verdict,
} from "./node_condition.ts";

/**
 * Which nodes of a workflow are active, and the event sources that start and
 * stop with them.
 *
 * A source is started at once if a node without `activeWhen` has it; otherwise
 * with the first of its nodes that is active.
 */
export class Activation<P extends KubernetesObject> {
  /** What the controller starts. */
  readonly sources: readonly EventSource<P>[];
  readonly #gates: ReadonlyMap<EventSource<P>, GatedSource<P>>;
  /** By the name of the definition. */
  readonly #presences: ReadonlyMap<string, CrdPresence<P>>;

  /** @param nodes The nodes of the workflow. */
  constructor(nodes: readonly WorkflowNode<P>[]) {
    const users = new Map<EventSource<P>, WorkflowNode<P>[]>();
    const presences = new Map<string, CrdPresence<P>>();
    for (const node of nodes) {
      for (const source of new Set(node.dependent.sources ?? [])) {
        users.set(source, [...users.get(source) ?? [], node]);
      }
      const { activeWhen } = node.when;
      if (typeof activeWhen !== "object") continue;
      const name = crdName(activeWhen.crdOf);
      if (!presences.has(name)) {
        presences.set(name, new CrdPresence(activeWhen.crdOf));
      }
    }
    this.#presences = presences;
    const gates = new Map<EventSource<P>, GatedSource<P>>();
    for (const [source, ofNodes] of users) {
      if (ofNodes.some(({ when }) => when.activeWhen === undefined)) continue;
      const opening = ofNodes.flatMap((node) => this.#presenceOf(node) ?? []);
      gates.set(source, new GatedSource(source, opening));
    }
    this.#gates = gates;
    this.sources = [
      ...presences.values(),
      ...Array.from(users.keys(), (source) => gates.get(source) ?? source),
    ];
  }

  /**
   * Whether a node is active for a primary; if so, its sources have synced.
   *
   * @returns Undefined if it always is.
   */
  async verdict(
    node: WorkflowNode<P>,
    { primary, ctx }: ActiveContext<P>,
  ): Promise<Verdict | undefined> {
    const { activeWhen } = node.when;
    if (activeWhen === undefined) return undefined;
    const presence = this.#presenceOf(node);
    if (presence !== undefined) return { met: presence.present };
    if (typeof activeWhen !== "function") return undefined;
    const verdict = asVerdict(await activeWhen({ primary, ctx }), {
      node: node.name,
      condition: "activeWhen",
    });
    const key = keyText(keyOf(primary));
    for (const source of node.dependent.sources ?? []) {
      const gate = this.#gates.get(source);
      if (verdict.met) await gate?.hold(node.name, key);
      else await gate?.release(node.name, key);
    }
    return verdict;
  }

  #presenceOf({ when }: WorkflowNode<P>): CrdPresence<P> | undefined {
    return typeof when.activeWhen === "object"
      ? this.#presences.get(crdName(when.activeWhen.crdOf))
      : undefined;
  }
}
