/**
 * Conversion between the versions of the kinds of a file: checked with generated
 * objects, and written into the definitions.
 *
 * @module
 */
import type { CrdManifest, DefinedKind } from "@coracle/operator/crd";
import { conversionReport } from "../testing/conversion_check.ts";
import { type Terminal, UsageError } from "./command.ts";

/** What the check of a kind has found; plain data. */
export interface ConversionFindings {
  /** Name of the definition. */
  readonly name: string;
  readonly kept: readonly string[];
  readonly problems: readonly string[];
}

/** Checks the conversion of a kind; undefined if it has no functions. */
export async function findConversion(
  kind: DefinedKind,
): Promise<ConversionFindings | undefined> {
  if (kind.conversion === undefined) return undefined;
  const { kept, problems } = await conversionReport(kind);
  return { name: `${kind.plural}.${kind.group}`, kept, problems };
}

/**
 * Reports what the checks of conversions have found.
 *
 * @returns The exit code: 1 if an object of a kind would be lost or refused.
 */
export function sayConversions(
  terminal: Terminal,
  findings: readonly ConversionFindings[],
): number {
  for (const { name, kept } of findings) {
    for (const path of kept) {
      terminal.say(`An annotation of ${name} keeps ${path}.\n`);
    }
  }
  const refused = findings.flatMap(({ name, problems }) =>
    problems.map((problem) =>
      `The conversion of ${name} must lose nothing: ${problem}\n`
    )
  );
  terminal.say(refused.join(""));
  return refused.length === 0 ? 0 : 1;
}

/** Service in front of an operator. */
export interface OperatorService {
  readonly namespace: string;
  readonly name: string;
  readonly port?: number | undefined;
}

/** Path of the conversion on the webhook listener of an operator. */
const CONVERT_PATH = "/convert";

/** Value of `--service NAMESPACE/NAME`. */
export function serviceOf(
  text: string | undefined,
): OperatorService | undefined {
  if (text === undefined) return undefined;
  const label = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
  const [namespace = "", name = "", ...more] = text.split("/");
  if (more.length === 0 && label.test(namespace) && label.test(name)) {
    return { namespace, name };
  }
  throw new UsageError(
    `Cannot use --service: it must be such as shop-system/shop: received "${text}"`,
  );
}

/**
 * Writes into definitions where an API server calls the operator for conversions.
 *
 * @param serviceOf Service in front of the operator that converts the objects.
 * @param advice What to do if none exists.
 * @throws {UsageError} If a definition needs a service and none exists.
 */
export function convertedBy(
  definitions: readonly CrdManifest[],
  serviceOf: (definition: CrdManifest) => OperatorService | undefined,
  advice: string,
): readonly CrdManifest[] {
  return definitions.map((definition) => {
    const { metadata, spec } = definition;
    if (spec.conversion === undefined) return definition;
    const service = serviceOf(definition);
    if (service === undefined) {
      throw new UsageError(
        `Cannot print the definition of ${metadata.name}: the operator converts its versions: ${advice}`,
      );
    }
    const { conversion } = spec;
    const clientConfig = {
      service: { ...service, port: service.port ?? 443, path: CONVERT_PATH },
    };
    const webhook = { ...conversion.webhook, clientConfig };
    return {
      ...definition,
      spec: { ...spec, conversion: { ...conversion, webhook } },
    };
  });
}
