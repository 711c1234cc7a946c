import type { UntypedObject } from "@coracle/operator/client";
import {
  type CrdObject,
  isJsonObject,
  jsonEquals,
} from "@coracle/operator/internal";
import type { WebhookClientConfig } from "@coracle/operator/kinds";
import type { ConversionDeps } from "../registry.ts";
import { WebhookFailure } from "../admission/webhook_caller.ts";
import { answerOf, provideAnswer } from "../settle.ts";
import { serverError } from "../status.ts";
import { tagProblems } from "../validation/object_meta.ts";
import { goTypeName } from "../validation/go_value.ts";
import { writeJson } from "../exact_json.ts";

/** Time limit of a conversion in milliseconds. */
const TIMEOUT_MS = 30_000;

/** Conversion of the objects of a CRD by its webhook. */
export class WebhookConversion {
  readonly #config: WebhookClientConfig;
  readonly #reviewVersion: string | undefined;
  readonly #deps: ConversionDeps;

  constructor(crd: CrdObject, deps: ConversionDeps) {
    const { conversion } = crd.spec as {
      conversion?: {
        webhook?: {
          clientConfig?: WebhookClientConfig;
          conversionReviewVersions?: readonly string[];
        };
      };
    };
    const { clientConfig = {}, conversionReviewVersions = [] } =
      conversion?.webhook ?? {};
    this.#config = clientConfig;
    this.#reviewVersion = conversionReviewVersions.find((version) =>
      version === "v1" || version === "v1beta1"
    );
    this.#deps = deps;
  }

  /** Converts one object by the webhook, in a step of `settle`, or by a prepared conversion. */
  convert(object: UntypedObject, apiVersion: string): UntypedObject {
    // kube-apiserver does not ask about objects without content.
    if (Object.keys(object).length <= 2 && object.metadata === undefined) {
      return { ...object, apiVersion };
    }
    return structuredClone(
      answerOf(
        answerKey(object, apiVersion),
        async () => (await this.#ask([object], apiVersion))[0],
      ) as UntypedObject,
    );
  }

  /**
   * Converts several objects by one call of the webhook, for the later
   * conversion of each.
   */
  prepare(objects: readonly UntypedObject[], apiVersion: string): void {
    const others = objects.filter((object) => object.apiVersion !== apiVersion);
    if (others.length === 0) return;
    const key = others.map((object) => answerKey(object, apiVersion));
    const converted = answerOf(
      `list ${key.join()}`,
      () => this.#ask(others, apiVersion),
    );
    for (const [index, object] of converted.entries()) {
      provideAnswer(key[index] ?? "", object);
    }
  }

  async #ask(
    objects: readonly UntypedObject[],
    desiredAPIVersion: string,
  ): Promise<UntypedObject[]> {
    const [{ apiVersion = "", kind = "" } = {}] = objects;
    const shown = `${apiVersion}, Kind=${kind}`;
    const failure = (why: string) =>
      serverError(`conversion webhook for ${shown} ${why}`);
    if (this.#reviewVersion === undefined) {
      throw serverError("no supported conversion review versions");
    }
    const uid = this.#deps.random.uid();
    let converted;
    try {
      const answer = await this.#deps.webhooks.call(this.#config, {
        kind: "ConversionReview",
        apiVersion: `apiextensions.k8s.io/${this.#reviewVersion}`,
        request: { uid, desiredAPIVersion, objects },
      }, TIMEOUT_MS);
      converted = this.#read(answer, uid);
    } catch (error) {
      throw failure(`failed: ${(error as Error).message}`);
    }
    if (converted.length !== objects.length) {
      throw failure(
        `returned ${converted.length} objects, expected ${objects.length}`,
      );
    }
    return converted.map((object, index) => {
      const original = objects[index] as UntypedObject;
      const type = typeProblem(original, object, desiredAPIVersion);
      if (type !== undefined) {
        throw failure(`returned invalid object at index 0: ${type}`);
      }
      const problem = identityProblem(original, object as UntypedObject);
      if (problem !== undefined) {
        throw failure(`returned invalid object: ${problem}`);
      }
      const metadata = restoredMetadata(original, object as UntypedObject);
      if (typeof metadata === "string") {
        throw failure(`returned invalid metadata: ${metadata}`);
      }
      return { ...object as UntypedObject, metadata };
    });
  }

  /** Objects of a successful response of the webhook. */
  #read(answer: unknown, uid: string): readonly unknown[] {
    const review = isJsonObject(answer) ? answer : {};
    const { response } = review;
    if (this.#reviewVersion === "v1") {
      const { apiVersion = "", kind = "" } = review;
      if (
        apiVersion !== "apiextensions.k8s.io/v1" || kind !== "ConversionReview"
      ) {
        throw new WebhookFailure(
          `expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got ${
            String(apiVersion).includes("/") ? apiVersion : `/${apiVersion}`
          }, Kind=${kind}`,
        );
      }
    }
    if (!isJsonObject(response)) {
      throw new WebhookFailure("no response provided");
    }
    if (this.#reviewVersion === "v1" && response.uid !== uid) {
      throw new WebhookFailure(
        `expected response.uid="${uid}", got "${response.uid ?? ""}"`,
      );
    }
    const { status = "", message } = isJsonObject(response.result)
      ? response.result
      : {};
    if (status !== "Success") {
      throw new WebhookFailure(
        message
          ? String(message)
          : `response.result.status was '${status}', not 'Success'`,
      );
    }
    const { convertedObjects } = response;
    return Array.isArray(convertedObjects) ? convertedObjects : [];
  }
}

function answerKey(object: UntypedObject, apiVersion: string): string {
  return `convert ${apiVersion} ${writeJson(object)}`;
}

function typeProblem(
  original: UntypedObject,
  converted: unknown,
  apiVersion: string,
): string | undefined {
  const object = isJsonObject(converted) ? converted : {};
  if (object.apiVersion !== apiVersion) {
    return `invalid groupVersion (expected ${apiVersion}, received ${
      object.apiVersion ?? ""
    })`;
  }
  return object.kind === original.kind
    ? undefined
    : `invalid kind (expected ${original.kind}, received ${object.kind ?? ""})`;
}

/** Fields of the metadata that identify an object. */
const IDENTITY = [["name", "name"], ["namespace", "namespace"], ["uid", "UID"]];

function identityProblem(
  original: UntypedObject,
  { metadata }: UntypedObject,
): string | undefined {
  for (const [field = "", shown] of IDENTITY) {
    const before = Reflect.get(original.metadata, field) ?? "";
    const after = isJsonObject(metadata) ? metadata[field] ?? "" : "";
    if (before !== after) {
      return `must have the same ${shown}: ${before} != ${after}`;
    }
  }
  return undefined;
}

/**
 * Metadata of the original with labels and annotations of the converted object;
 * an error message if those are invalid.
 */
function restoredMetadata(
  original: UntypedObject,
  converted: UntypedObject,
): UntypedObject["metadata"] | string {
  const given: unknown = converted.metadata;
  if (given === undefined) return "missing metadata in converted object";
  if (!isJsonObject(given)) {
    return `invalid metadata of type ${goTypeName(given)} in converted object`;
  }
  const metadata = structuredClone(original.metadata);
  for (const field of ["labels", "annotations"] as const) {
    const values = given[field];
    delete metadata[field];
    if (values === undefined || values === null) continue;
    if (!isJsonObject(values)) {
      return `invalid metadata.${field} of type ${
        goTypeName(values)
      } in converted object`;
    }
    const odd = Object.entries(values).find(([, value]) =>
      typeof value !== "string"
    );
    if (odd !== undefined) {
      return `metadata.${field}[${odd[0]}] must be a string, but is ${
        goTypeName(odd[1])
      } in converted object`;
    }
    const texts = values as Record<string, string>;
    if (!jsonEquals(texts, original.metadata[field] ?? {})) {
      const problems = tagProblems({ [field]: texts }).map((cause) =>
        `${cause.field}: ${cause.message}`
      );
      if (problems.length === 1) return problems.join();
      if (problems.length > 1) return `[${problems.join(", ")}]`;
    }
    metadata[field] = texts;
  }
  return metadata;
}
