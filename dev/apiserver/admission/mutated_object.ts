import type { UntypedObject } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { Attributes } from "./admission.ts";
import { type Match, objectFor } from "./review_request.ts";

/** Progress of the policies or webhooks of a request over both rounds of mutation. */
export class Round {
  /** Keys of policies and webhooks that have run and may run again. */
  readonly #invoked: Set<string> = new Set();
  /** Keys of policies and webhooks that run again. */
  readonly #due: Set<string> = new Set();
  #output: unknown;

  /** Schedules another run of all policies and webhooks that have run. */
  requireAll(): void {
    for (const key of this.#invoked) this.#due.add(key);
    this.#invoked.clear();
  }

  /** Records that a policy or webhook has run and may run again. */
  invoked(key: string): void {
    this.#invoked.add(key);
  }

  /** Whether a policy or webhook runs again. */
  isDue(key: string): boolean {
    return this.#due.has(key);
  }

  /** Begins the second round; runs all again if the object has changed since the first. */
  again(object: UntypedObject | undefined): void {
    if (!jsonEquals(object, this.#output)) this.requireAll();
  }

  /** Ends a round with the object that it left. */
  end(object: UntypedObject | undefined): void {
    this.#output = structuredClone(object);
  }
}

/** Object under mutation, in the version of a match. */
export class MutatedObject {
  readonly #attributes: Attributes;
  #object: UntypedObject | undefined;
  /** Whether the plug-ins, policies and webhooks run a second time. */
  reinvoke = false;

  constructor(attributes: Attributes) {
    this.#attributes = attributes;
    this.#object = attributes.object;
  }

  /** Object in the version of a match. */
  async in(match: Match): Promise<UntypedObject | undefined> {
    return await objectFor(this.#object, match);
  }

  /** Object in the version of the request. */
  async get(): Promise<UntypedObject | undefined> {
    const { definition, version } = this.#attributes.request;
    return await this.in({ definition, version });
  }

  /** Attributes of the request with the current object. */
  async attributes(): Promise<Attributes> {
    return { ...this.#attributes, object: await this.get() };
  }

  /** Replaces the object by a changed one; returns whether it differs. */
  set(value: UntypedObject, { definition, version }: Match): boolean {
    const before = this.#object;
    let object = structuredClone(value);
    if (object.kind === definition.kind) {
      ({ object } = version.decode(object));
      version.setDefaults(object);
    }
    this.#object = object;
    const changed = !jsonEquals(before, object);
    if (changed) this.reinvoke = true;
    return changed;
  }
}
