import type { Change } from "../../apiserver/storage/history.ts";
import type { StoredObject } from "../../apiserver/storage/stored_object.ts";
import { isSecrets, type SecretTexts } from "@coracle/operator/internal";
import type { RequestEntry, TraceEntry, TraceSink } from "../check/trace.ts";
import {
  type FieldDifference,
  fieldDifferences,
  pathText,
} from "./field_changes.ts";

/** Changes of an object by the operator from which on their fields are noted. */
const MANY_CHANGES = 3;
/** Times of the last writes of an object that are kept. */
const KEPT_TIMES = 24;
/** Objects and messages that are kept of each failure. */
const KEPT_OBJECTS = 20;
/** Different failures and Events that are kept. */
const KEPT_ENTRIES = 1_000;

/** Last change of an object by the operator. */
export interface OwnWrite {
  readonly verb: string;
  /** Field manager of the write. */
  readonly manager: string;
}

/** Object that was changed in a plan. */
export interface TouchedObject {
  /** First state; undefined if there was none. */
  before: StoredObject | undefined;
  /** Last state; undefined if it was deleted. */
  after: StoredObject | undefined;
  /** Last state of a deleted object. */
  last: StoredObject;
  /** Last write of the operator; undefined if only the cluster changed it. */
  write: OwnWrite | undefined;
  /** Who deleted it. */
  deletedBy: "operator" | "cluster" | undefined;
  /** Paths that the cluster changed last. */
  others: Set<string> | undefined;
  /** Changes by the operator, and their last times. */
  changes: number;
  times: number[];
  /** Hashes of the last states, in order. */
  states: string[];
  /** Fields of the last change. */
  fields: readonly string[];
  /** Writes of the operator that changed nothing, and their last times. */
  idle: number;
  idleTimes: number[];
}

/** Failures of runs with one text. */
interface Failures {
  count: number;
  /** Virtual time of the last one. */
  last: number;
  /** Whether one of them was not followed by a retry. */
  isFinal: boolean;
  readonly objects: Set<string>;
}

/** Change whose cause is not known yet. */
interface Noted {
  readonly change: Change;
  readonly at: number;
  who?: string;
}

/**
 * Record of what an operator did in a simulation: changes by object and cause,
 * and what failed. It keeps neither requests nor bodies, so that its size is that
 * of the changed objects.
 */
export class PlanRecord implements TraceSink {
  readonly touched: Map<string, TouchedObject> = new Map();
  readonly failures: Map<string, Failures> = new Map();
  readonly events: Map<string, StoredObject> = new Map();
  /** Field managers of the operator's writes. */
  readonly managers: Set<string> = new Set();
  /** Access that the operator used, as `VERB GROUP/RESOURCE`. */
  readonly access: Set<string> = new Set();
  /** Resources that the operator asked for, as `GROUP/PLURAL`. */
  readonly resources: Set<string> = new Set();
  /** Requests that the server refused for want of rights or as invalid. */
  readonly refused: Map<string, number> = new Map();
  #pending: Noted[] = [];
  #handled: Noted[] = [];
  #request: RequestEntry | undefined;
  #now = 0;
  #isEnded = false;
  /** Ends of the operator's process, by their reasons. */
  readonly ends: string[] = [];

  readonly #secrets: SecretTexts;

  /** @param secrets Texts that must not be shown, to which those of the run are added. */
  constructor(secrets: SecretTexts) {
    this.#secrets = secrets;
  }

  /** Adds a change of the store, whose cause the trace tells later. */
  change(change: Change): void {
    if (this.#isEnded) return;
    const { storedAs, group, plural } = change.object.definition;
    if (isSecrets(storedAs ?? { group, plural })) {
      this.#secrets.add(change.object.parse());
    }
    this.#pending.push({ change, at: this.#now });
  }

  push(entry: TraceEntry): void {
    if (this.#isEnded) return;
    this.#now = entry.at;
    switch (entry.type) {
      case "request":
        return this.#turn(entry);
      case "actor": {
        const { revision, who } = entry;
        const changed =
          this.#handled.find(({ change }) => change.revision === revision) ??
            this.#pending.find(({ change }) => change.revision === revision);
        if (changed !== undefined) changed.who = who;
        return;
      }
      case "log":
        return this.#noteLog(entry.message, entry.fields);
      case "exit":
        if (this.ends.length < KEPT_OBJECTS) this.ends.push(entry.why);
        return;
      case "rejection":
        return this.#fail(entry.message, "", true);
    }
  }

  /** Completes the record: what happens from now on is not in it. */
  end(): void {
    this.#turn(undefined);
    this.#turn(undefined);
    this.#isEnded = true;
  }

  /**
   * Notes the changes of the last request: its consequences are known when the
   * next one is handled.
   */
  #turn(entry: RequestEntry | undefined): void {
    const own = new Set<string>();
    for (const { change, at, who } of this.#handled) {
      const { definition, key } = change.object;
      const id = `${definition.group}/${definition.plural} ${key}`;
      // A request changes an object once; controllers answer while it is handled.
      const isOwn = who === undefined && !own.has(id) &&
        isAnswered(change, this.#request);
      if (isOwn) own.add(id);
      this.#note(change, isOwn ? this.#request : undefined, at);
    }
    this.#noteRequest(this.#request);
    this.#handled = this.#pending;
    this.#pending = [];
    this.#request = entry;
  }

  #noteRequest(entry: RequestEntry | undefined): void {
    if (entry === undefined || entry.resource === "") return;
    const { group, resource, subresource, verb, write, changed, code } = entry;
    const path = subresource === "" ? resource : `${resource}/${subresource}`;
    this.access.add(`${verb} ${group}/${path}`);
    if (verb === "patch" && code === 201) {
      this.access.add(`create ${group}/${path}`);
    }
    if (!/reviews?$/.test(resource) && subresource !== "token") {
      this.resources.add(`${group}/${resource}`);
    }
    if (write === undefined || changed || code === 0) return;
    if (code >= 400) {
      const text = `${verb} ${path} ${code} ${entry.reason ?? ""}`.trim();
      this.refused.set(text, (this.refused.get(text) ?? 0) + 1);
      return;
    }
    const { namespace, name } = entry;
    const key = namespace === "" ? name : `${namespace}/${name}`;
    const object = this.touched.get(`${group}/${resource} ${key}`);
    if (object === undefined) return;
    object.idle++;
    keep(object.idleTimes, entry.at);
  }

  #note(change: Change, request: RequestEntry | undefined, at: number): void {
    const { type, object, previous } = change;
    const { definition, key } = object;
    const { group, plural } = definition.storedAs ?? definition;
    if (plural === "leases") return;
    if (plural === "events") {
      if (this.events.size < KEPT_ENTRIES) this.events.set(key, object);
      return;
    }
    const id = `${group}/${plural} ${key}`;
    const isOwn = request !== undefined;
    let touched = this.touched.get(id);
    if (touched === undefined) {
      touched = {
        before: previous,
        after: undefined,
        last: object,
        write: undefined,
        deletedBy: undefined,
        others: undefined,
        changes: 0,
        times: [],
        states: [],
        fields: [],
        idle: 0,
        idleTimes: [],
      };
      this.touched.set(id, touched);
      previous?.compress();
    }
    const isDeleted = type === "DELETED";
    touched.after = isDeleted ? undefined : object;
    touched.last = object;
    touched.deletedBy = isDeleted ? isOwn ? "operator" : "cluster" : undefined;
    if (isOwn) {
      touched.write = ownWrite(request);
      this.managers.add(touched.write.manager);
      touched.changes++;
      keep(touched.times, at);
    }
    const isMany = touched.changes >= MANY_CHANGES;
    if (previous === undefined || isDeleted) return;
    if (isOwn && touched.others === undefined && !isMany) return;
    const changed = fieldDifferences(previous.parse(), object.parse());
    if (!isOwn) {
      touched.others ??= new Set();
      for (const { path } of changed) touched.others.add(pathText(path));
      return;
    }
    for (const { path } of changed) touched.others?.delete(pathText(path));
    touched.fields = changed.map(({ path }) => pathText(path));
    keep(touched.states, JSON.stringify(changed.map(afterOf)));
  }

  #noteLog(message: string, fields: string): void {
    if (!message.startsWith("Run failed")) return;
    const { object, error } = JSON.parse(fields) as {
      readonly object?: unknown;
      readonly error?: unknown;
    };
    const text = String(error).replace(/^\w*Error: /, "");
    const isFinal = /no retry is left|ruled out/.test(message);
    this.#fail(text, String(object ?? ""), isFinal);
  }

  #fail(full: string, object: string, isFinal: boolean): void {
    // Before anything is cut from it, or replaced in it.
    const [text = ""] = this.#secrets.hide(full).split("\n", 1);
    // One reason for many objects, whose names are in the text.
    const [, name = ""] = /([^/]+)$/.exec(object) ?? [];
    const reason = name.length < 3 ? text : text.replaceAll(name, "NAME");
    const known = this.failures.get(reason);
    if (known === undefined && this.failures.size >= KEPT_ENTRIES) return;
    const failures = known ??
      { count: 0, last: 0, isFinal: false, objects: new Set() };
    failures.count++;
    failures.last = this.#now;
    failures.isFinal ||= isFinal;
    if (object !== "" && failures.objects.size < KEPT_OBJECTS) {
      failures.objects.add(object);
    }
    this.failures.set(reason, failures);
  }
}

function afterOf({ path, after }: FieldDifference): unknown {
  return [pathText(path), after ?? null];
}

function keep<T>(list: T[], value: T): void {
  list.push(value);
  if (list.length > KEPT_TIMES) list.shift();
}

/**
 * Whether a change is that of a request: of its object, and with the version in its
 * answer. What reads, is tried out or is refused changes nothing.
 */
function isAnswered(
  { type, revision, object }: Change,
  request: RequestEntry | undefined,
): boolean {
  if (request?.write === undefined || request.code >= 400) return false;
  const { verb, revision: answered, group, resource, namespace, name } =
    request;
  const { definition } = object;
  if (
    definition.group !== group || definition.plural !== resource ||
    object.namespace !== namespace || (name !== "" && object.name !== name)
  ) return false;
  return type === "DELETED" || verb.startsWith("delete") ||
    answered === undefined || answered === revision;
}

function ownWrite({ path, verb, subresource }: RequestEntry): OwnWrite {
  const query = new URLSearchParams(path.replace(/^[^?]*\??/s, ""));
  // Server-side apply is a patch that may take fields over.
  const name = verb === "patch" && query.has("force") ? "apply" : verb;
  return {
    verb: subresource === "" ? name : `${name} of ${subresource}`,
    manager: query.get("fieldManager") ?? "the operator",
  };
}
