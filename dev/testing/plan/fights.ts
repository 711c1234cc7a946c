/**
 * Fields that an operator takes from another manager, and sets again whenever that
 * manager sets them back.
 *
 * @module
 */
import {
  ApiError,
  type Kind,
  untyped,
  type UntypedObject,
} from "@coracle/operator/client";
import { jsonEquals, parseApiVersion } from "@coracle/operator/internal";
import type { Change } from "../../apiserver/storage/history.ts";
import type { World } from "../check/world.ts";
import {
  fieldAt,
  type FieldDifference,
  fieldDifferences,
  losersOf,
  managersOf,
  pathText,
  setField,
} from "./field_changes.ts";
import type { PlanRecord, TouchedObject } from "./plan_record.ts";
import type { PlannedFight } from "./plan_report.ts";

/** Times that a manager sets its fields back. */
const ROUNDS = 3;
/** Longest virtual time until an operator answers, in milliseconds. */
const ANSWER_MS = 5 * 60_000;
/** First step of the virtual time in which answers are awaited, in milliseconds. */
const STEP_MS = 1_000;
/** Requests, events and timers while fields are set back or answers awaited. */
const BASE_ACTIONS = 20_000;
/** More of them for each object whose answer is awaited. */
const ANSWER_ACTIONS = 100;

/** Fields of an object that a manager sets back. */
interface Contest {
  readonly kind: Kind<UntypedObject>;
  readonly key: { readonly namespace?: string; readonly name: string };
  readonly text: string;
  readonly manager: string;
  readonly fields: readonly FieldDifference[];
  /** Virtual time at which the fields were set back; undefined until then. */
  since: number | undefined;
  /** Virtual time until the operator set them again; undefined until then. */
  answer: number | undefined;
}

/** What other managers do in a plan that has come to its end. */
export class Fights {
  readonly #world: World;
  readonly #managers: ReadonlySet<string>;
  readonly #contests: Map<string, readonly Contest[]> = new Map();

  constructor(world: World, { touched, managers }: PlanRecord) {
    this.#world = world;
    this.#managers = managers;
    for (const [id, one] of touched) {
      const contests = contestsOf(one, managers);
      if (contests.length > 0) this.#contests.set(id, contests);
    }
  }

  /** Observes a change of the store. */
  change({ object: stored }: Change): void {
    const { definition, key } = stored;
    const { group, plural } = definition.storedAs ?? definition;
    const contests = this.#contests.get(`${group}/${plural} ${key}`);
    if (contests === undefined) return;
    const object = stored.parse();
    for (const contest of contests) {
      const { fields, since } = contest;
      const isBack = fields.every(({ path, before }) =>
        jsonEquals(fieldAt(object, path), before)
      );
      if (isBack) contest.since ??= this.#world.now;
      else if (since !== undefined && this.#isAnswer(object, fields)) {
        contest.answer ??= this.#world.now - since;
      }
    }
  }

  #isAnswer(
    object: UntypedObject,
    fields: readonly FieldDifference[],
  ): boolean {
    return fields.some(({ path, before }) =>
      !jsonEquals(fieldAt(object, path), before) &&
      (fieldAt(object, path) === undefined ||
        managersOf(object, path).some((name) => this.#managers.has(name)))
    );
  }

  /** Lets the managers set their fields back, several times. */
  async found(): Promise<readonly PlannedFight[]> {
    let open = [...this.#contests.values()].flat();
    for (let round = 0; round < ROUNDS && open.length > 0; round++) {
      for (const contest of open) {
        this.#world.allow(BASE_ACTIONS);
        await this.#setBack(contest);
      }
      this.#world.allow(BASE_ACTIONS + ANSWER_ACTIONS * open.length);
      await this.#answers(open);
      open = open.filter(({ answer }) => answer !== undefined);
    }
    return open.map(({ text, manager, fields, answer = 0 }) => ({
      object: text,
      manager,
      fields: fields.map(({ path }) => pathText(path)),
      answer,
    }));
  }

  async #setBack(contest: Contest): Promise<void> {
    const { kind, key, manager: fieldManager, fields } = contest;
    const { client } = this.#world;
    const options = { fieldManager };
    const setIn = (object: UntypedObject) => {
      for (const { path, before } of fields) setField(object, path, before);
      return object;
    };
    contest.since = contest.answer = undefined;
    // Both requests are answered before the operator goes on.
    const write = async () => {
      const object = await client.find(kind, key);
      if (object === undefined) return;
      const now = await client.replace(kind, setIn(object), options);
      if (!fields.some(({ path: [first] }) => first === "status")) return;
      await client.status.replace(kind, setIn(now), options);
    };
    // The cluster refuses it, or the kind has no status of its own.
    await this.#world.complete(write().catch(ignoreRefusal));
  }

  async #answers(open: readonly Contest[]): Promise<void> {
    const end = this.#world.now + ANSWER_MS;
    const isOpen = () =>
      open.some(({ since, answer }) =>
        since !== undefined && answer === undefined
      );
    const world = this.#world;
    // An exhausted world does not move: an operator with many timers ends the wait.
    for (
      let step = STEP_MS;
      isOpen() && world.now < end && !world.isExhausted;
      step *= 2
    ) await world.advance(Math.min(step, end - world.now));
  }
}

function ignoreRefusal(error: unknown): void {
  if (!ApiError.is(error)) throw error;
}

/** Fields of a changed object that other managers lose, by these. */
function contestsOf(
  { before, after, write, others }: TouchedObject,
  managers: ReadonlySet<string>,
): readonly Contest[] {
  if (write === undefined || before === undefined || after === undefined) {
    return [];
  }
  if (before.uid !== after.uid) return [];
  const [old, now] = [before.parse(), after.parse()];
  const isAlone = (old.metadata.managedFields ?? []).every(({ manager = "" }) =>
    managers.has(manager)
  );
  if (isAlone) return [];
  const lost = new Map<string, FieldDifference[]>();
  for (const field of fieldDifferences(old, now)) {
    // What controllers of the cluster changed, the operator has not taken.
    if (others?.has(pathText(field.path))) continue;
    for (const manager of losersOf(field, { old, now, managers })) {
      lost.set(manager, [...lost.get(manager) ?? [], field]);
    }
  }
  const { apiVersion = "", kind = "", metadata: { namespace, name } } = now;
  return Array.from(lost, ([manager, fields]) => ({
    kind: untyped({ ...parseApiVersion(apiVersion), kind }),
    key: { ...namespace !== undefined && { namespace }, name },
    text: `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`,
    manager,
    fields,
    since: undefined,
    answer: undefined,
  }));
}
