import {
  ApiError,
  type Client,
  type UntypedObject,
} from "@coracle/operator/client";
import type { CrdManifest } from "@coracle/operator/crd";
import {
  applyCrd,
  CRD_KIND,
  type JsonObject,
  sameKind,
} from "@coracle/operator/internal";
import {
  kindOf,
  type ObjectReference,
  referenceOf,
} from "./object_reference.ts";
import type { ObjectChange } from "./perturbations.ts";

/** Dependencies of {@linkcode OtherWriters}. */
export interface OtherWritersDeps {
  readonly client: Client;
  /** Runs the simulation until a promise is settled. */
  readonly complete: <T>(work: Promise<T>) => Promise<T>;
  /** Attributes the changes of the server so far. */
  readonly attribute: () => void;
}

/** Writes of the user of a simulation, and of the check. */
export class OtherWriters {
  readonly #deps: OtherWritersDeps;
  /** Object that one of them is changing. */
  acting: { readonly who: "user" | "check"; readonly key: string } | undefined;

  constructor(deps: OtherWritersDeps) {
    this.#deps = deps;
  }

  /** Applies an object as the user; waits until a CRD is served. */
  async apply(object: UntypedObject): Promise<void> {
    const { client, complete } = this.#deps;
    const kind = kindOf(referenceOf(object));
    if (sameKind(kind, CRD_KIND)) {
      const crd: object = object;
      const options = { fieldManager: "user" };
      await complete(applyCrd(client, crd as CrdManifest, options));
      return;
    }
    await this.#act(
      "user",
      referenceOf(object),
      (namespace) =>
        client.apply(
          kind,
          { ...object, metadata: { ...object.metadata, namespace } },
          { force: true, fieldManager: "user" },
        ),
    );
  }

  /**
   * Changes an object by a JSON merge patch, or deletes it. The status of a patch of
   * the user is written as another controller writes it.
   */
  async change(
    who: "user" | "check",
    target: ObjectReference,
    { patch = {}, delete: deletes }: ObjectChange,
  ): Promise<void> {
    const { client } = this.#deps;
    const kind = kindOf(target);
    await this.#act(
      who,
      target,
      async (namespace) => {
        const key = { name: target.name, namespace };
        if (deletes) {
          await client.delete(kind, key, {
            // As kubectl does; the server's default leaves the pods of a Job.
            propagationPolicy: deletes === true ? "Background" : deletes,
          });
          return;
        }
        const options = { fieldManager: who };
        await client.patch(kind, key, patch, options);
        const { status } = patch as JsonObject;
        if (status === undefined || who === "check") return;
        try {
          await client.status.patch(kind, key, { status }, options);
        } catch (error) {
          // Its kind has no subresource: the status was written with the rest.
          if (!ApiError.is(error) || !error.isNotFound) throw error;
        }
      },
    );
  }

  async #act(
    who: "user" | "check",
    target: ObjectReference,
    act: (namespace: string | undefined) => Promise<unknown>,
  ): Promise<void> {
    const { client, complete, attribute } = this.#deps;
    const kind = kindOf(target);
    const work = async () => {
      const resolved = await client.resolve(kind);
      const namespace = resolved.scope === "Cluster"
        ? undefined
        : target.namespace ?? "default";
      const own = namespace === undefined ? "" : `${namespace}/`;
      const key = `${kind.group}/${resolved.plural}/${own}${target.name}`;
      attribute();
      this.acting = { who, key };
      try {
        await act(namespace);
      } finally {
        attribute();
        this.acting = undefined;
      }
    };
    // A perturbation acts within a step of the simulation, which waits for it.
    await (who === "check" ? work() : complete(work()));
  }
}
