import type {
  GroupResource,
  ResourceDefinition,
  ResourceVersion,
} from "./registry.ts";
import { resourceKey } from "./storage/store.ts";

/** Listener of changes of the set of custom resources. */
export type ResourcesListener = () => void;

/** Resources that a server serves: built-in ones and those of CRDs. */
export class Resources {
  readonly #builtin: Map<string, ResourceDefinition> = new Map();
  readonly #custom: Map<string, ResourceDefinition> = new Map();
  readonly #builtinGroups: Set<string> = new Set();
  readonly #listeners: ResourcesListener[] = [];
  #generation = 1;

  /**
   * Creates the registry with the built-in resources.
   *
   * @param builtin Built-in resources.
   */
  constructor(builtin: Iterable<ResourceDefinition>) {
    for (const definition of builtin) {
      this.#builtin.set(resourceKey(definition), definition);
      this.#builtinGroups.add(definition.group);
    }
  }

  /** Counter of changes, for caches of data derived from definitions. */
  get generation(): number {
    return this.#generation;
  }

  /** All definitions, in no particular order. */
  *definitions(): Iterable<ResourceDefinition> {
    yield* this.#builtin.values();
    yield* this.#custom.values();
  }

  /** Definition of a group and plural; undefined if it is not served. */
  find(group: string, plural: string): ResourceDefinition | undefined {
    const key = resourceKey({ group, plural });
    return this.#builtin.get(key) ?? this.#custom.get(key);
  }

  /** Definition of a kind. */
  findKind(group: string, kind: string): ResourceDefinition | undefined {
    for (const definition of this.definitions()) {
      if (definition.group === group && definition.kind === kind) {
        return definition;
      }
    }
    return undefined;
  }

  /**
   * Definition under which the objects of a definition are stored: the same
   * one, or that of another group.
   */
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

  /** Adds or replaces the definition of a custom resource. */
  serve(definition: ResourceDefinition): void {
    this.#custom.set(resourceKey(definition), definition);
    this.#changed();
  }

  /** Removes a custom resource. */
  withdraw(resource: GroupResource): void {
    if (this.#custom.delete(resourceKey(resource))) this.#changed();
  }

  /** Adds a listener of changes. */
  listen(listener: ResourcesListener): void {
    this.#listeners.push(listener);
  }

  #changed(): void {
    this.#generation++;
    for (const listener of this.#listeners) listener();
  }
}

/** Served version with a given name. */
export function servedVersion(
  definition: ResourceDefinition,
  name: string,
): ResourceVersion | undefined {
  return definition.versions.find((version) =>
    version.name === name && version.served
  );
}

/** Storage version of a resource. */
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
