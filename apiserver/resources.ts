import type {
  GroupResource,
  ResourceDefinition,
  ResourceSource,
  ResourceVersion,
} from "./registry.ts";
import { resourceKey } from "./storage/store.ts";

/** Is told when the set of custom resources changed. */
export type ResourcesListener = () => void;

/** The resources that a server serves: built-in ones and those of CRDs. */
export class Resources implements ResourceSource {
  readonly #builtin: Map<string, ResourceDefinition> = new Map();
  readonly #custom: Map<string, ResourceDefinition> = new Map();
  readonly #builtinGroups: Set<string> = new Set();
  readonly #listeners: ResourcesListener[] = [];
  #generation = 1;

  /** @param builtin What is served from the start. */
  constructor(builtin: Iterable<ResourceDefinition>) {
    for (const definition of builtin) {
      this.#builtin.set(resourceKey(definition), definition);
      this.#builtinGroups.add(definition.group);
    }
  }

  /** Grows with every change, for caches of what is made from definitions. */
  get generation(): number {
    return this.#generation;
  }

  *definitions(): Iterable<ResourceDefinition> {
    yield* this.#builtin.values();
    yield* this.#custom.values();
  }

  find(group: string, plural: string): ResourceDefinition | undefined {
    const key = resourceKey({ group, plural });
    return this.#builtin.get(key) ?? this.#custom.get(key);
  }

  /** The definition whose objects have this kind. */
  findKind(group: string, kind: string): ResourceDefinition | undefined {
    for (const definition of this.definitions()) {
      if (definition.group === group && definition.kind === kind) {
        return definition;
      }
    }
    return undefined;
  }

  /** Who describes objects as they are stored: itself, or another group. */
  home(definition: ResourceDefinition): ResourceDefinition {
    const { storedAs } = definition;
    return storedAs === undefined
      ? definition
      : this.find(storedAs.group, storedAs.plural) ?? definition;
  }

  /** Whether a group is built in. */
  isBuiltinGroup(group: string): boolean {
    return this.#builtinGroups.has(group);
  }

  /** Serves a custom resource, or serves it in a new form. */
  serve(definition: ResourceDefinition): void {
    this.#custom.set(resourceKey(definition), definition);
    this.#changed();
  }

  /** Stops to serve a custom resource. */
  withdraw(resource: GroupResource): void {
    if (this.#custom.delete(resourceKey(resource))) this.#changed();
  }

  /** Tells a listener of every change from now on. */
  listen(listener: ResourcesListener): void {
    this.#listeners.push(listener);
  }

  #changed(): void {
    this.#generation++;
    for (const listener of this.#listeners) listener();
  }
}

/** The served version of that name. */
export function servedVersion(
  definition: ResourceDefinition,
  name: string,
): ResourceVersion | undefined {
  return definition.versions.find((version) =>
    version.name === name && version.served
  );
}

/** The version in which objects are stored. */
export function storageVersionOf(
  definition: ResourceDefinition,
): ResourceVersion {
  const { versions, storageVersion } = definition;
  const version = versions.find(({ name }) => name === storageVersion);
  if (version === undefined) {
    throw new TypeError(
      `Cannot serve ${definition.plural}: its storage version must be one of its versions: received "${storageVersion}"`,
    );
  }
  return version;
}
