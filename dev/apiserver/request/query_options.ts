import type { JsonObject } from "@coracle/operator/internal";
import type { ServerRequest } from "../http/exchange.ts";
import { byteLength, oddCharacters } from "../validation/names.ts";
import { OPTIONS_TEXT } from "../validation/rules/rule_data.ts";
import { badRequest, invalid, serverError } from "../status.ts";
import { RuleText } from "../validation/rules/rule_text.ts";
import { validationLine } from "../validation/rules/rule_words.ts";
import { decodeKind } from "./body.ts";

/** Query options of a list or watch, without selectors. */
export interface ListOptions {
  readonly watch: boolean;
  readonly bookmarks: boolean;
  /** Value of `sendInitialEvents`; undefined if absent. */
  readonly sendInitialEvents: boolean | undefined;
  /** Requested revision; undefined if absent or empty. */
  readonly resourceVersion: number | undefined;
  readonly resourceVersionMatch: string;
  /** Time limit in seconds; undefined if absent. */
  readonly timeoutSeconds: number | undefined;
  /** Maximum number of items; 0 for no limit. */
  readonly limit: number;
  readonly continue: string;
}

/** Query options of a write. */
export interface WriteOptions {
  readonly dryRun: boolean;
  /** Field manager: the parameter, or the user agent up to its first slash. */
  readonly fieldManager: string;
  readonly fieldValidation: FieldValidation;
  /** Whether an apply takes over the fields of other managers; undefined if the parameter is absent. */
  readonly force: boolean | undefined;
}

/** Handling of fields that are not in the schema. */
export type FieldValidation = "Strict" | "Warn" | "Ignore";

/** Validation rules of query options. */
export const OPTIONS: RuleText = new RuleText({
  text: OPTIONS_TEXT,
  compileLine: validationLine,
  functions: {
    areAll: (values: readonly string[], wanted: string) =>
      values.every((value) => value === wanted),
    byteLength,
    join: (texts: readonly string[]) => texts.join(", "),
    json: JSON.stringify,
    oddCharacters,
  },
});

/**
 * Checks options by a block of rules.
 *
 * @throws {StatusError} 422 that names the kind of the options.
 */
function check(
  block: string,
  kind: string,
  options: object,
  variables: Readonly<Record<string, unknown>> = {},
): void {
  const causes = OPTIONS.causes(block, options, variables);
  if (causes.length > 0) throw invalid({ group: "meta.k8s.io", kind }, causes);
}

/** Boolean parameter as Go parses it: present and neither `false` nor `0`. */
function flag(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name);
  return text === null
    ? undefined
    : text !== "0" && text.toLowerCase() !== "false";
}

function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  if (!/^[+-]?\d+$/.test(text)) {
    throw badRequest(
      `strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`,
    );
  }
  const value = BigInt(text);
  if (BigInt.asIntN(64, value) !== value) {
    throw badRequest(
      `strconv.ParseInt: parsing ${JSON.stringify(text)}: value out of range`,
    );
  }
  return Number(value);
}

/**
 * Parses the resourceVersion of a read.
 *
 * @throws {StatusError} 400 for a list and 500 for other reads, as in
 * kube-apiserver, if it is not a number.
 */
export function readResourceVersion(
  text: string | null,
  { list = false }: { readonly list?: boolean } = {},
): number | undefined {
  if (text === null || text === "") return undefined;
  if (!/^\d+$/.test(text)) {
    const message = `resourceVersion: Invalid value: ${
      JSON.stringify(text)
    }: strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`;
    throw list ? badRequest(message) : serverError(message);
  }
  return Number(text);
}

/**
 * Parses the parameters of a list or watch.
 *
 * @param query Query parameters.
 * @param watch Whether the path is a watch path.
 * @throws {StatusError} 400 or 422 if they are invalid.
 */
export function readListOptions(
  query: URLSearchParams,
  watch: boolean,
): ListOptions {
  const options = {
    watch: watch || flag(query, "watch") === true,
    bookmarks: flag(query, "allowWatchBookmarks") === true,
    sendInitialEvents: flag(query, "sendInitialEvents"),
    resourceVersionMatch: query.get("resourceVersionMatch") ?? "",
    timeoutSeconds: integer(query, "timeoutSeconds"),
    limit: Math.max(integer(query, "limit") ?? 0, 0),
    continue: query.get("continue") ?? "",
  };
  const resourceVersion = query.get("resourceVersion");
  check(options.watch ? "watch" : "list", "ListOptions", {
    ...options,
    resourceVersion,
  });
  return {
    ...options,
    resourceVersion: readResourceVersion(resourceVersion, {
      list: !options.watch,
    }),
  };
}

/** Kind of options that errors of a write name. */
export type WriteKind = "CreateOptions" | "UpdateOptions" | "PatchOptions";

/**
 * Parses the parameters of a write.
 *
 * @param kind Options kind of the write.
 * @param apply Whether the write is a server-side apply.
 * @throws {StatusError} 422 if they are invalid.
 */
export function readWriteOptions(
  { query, http }: {
    readonly query: URLSearchParams;
    readonly http: Pick<ServerRequest, "headers">;
  },
  kind: WriteKind,
  apply = false,
): WriteOptions {
  const fieldManager = query.get("fieldManager") ?? "";
  const force = flag(query, "force");
  const fieldValidation = query.get("fieldValidation") ?? "";
  const dryRun = query.getAll("dryRun");
  const given = { fieldManager, force, fieldValidation, dryRun };
  check("write", kind, given, { $apply: apply, $kind: kind });
  return {
    dryRun: dryRun.length > 0,
    fieldManager: fieldManager || agentName(http.headers["user-agent"]),
    fieldValidation: (fieldValidation || "Warn") as FieldValidation,
    force,
  };
}

/**
 * Printable characters of the user agent up to its first slash, as far as they
 * fit: the default field manager.
 */
function agentName(userAgent: string | undefined): string {
  const agent = (userAgent ?? "unknown").split("/")[0] ?? "";
  if (/^[ -~]{0,128}$/.test(agent)) return agent;
  let name = "";
  for (const character of agent) {
    if (oddCharacters(character).length > 0) continue;
    if (byteLength(name + character) > 128) break;
    name += character;
  }
  return name;
}

/** Definition of the body of a deletion. */
const DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/** Options of a deletion, from its body or query. */
export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: string | undefined;
  readonly orphanDependents: boolean | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
}

/**
 * Parses the options of a deletion. A body takes precedence over the query, as
 * in kube-apiserver.
 *
 * @throws {StatusError} 400 or 422 if they are invalid.
 */
export function readDeleteOptions(
  query: URLSearchParams,
  body: JsonObject | undefined,
): DeleteOptions {
  const given: GivenDeleteOptions = body === undefined
    ? {
      gracePeriodSeconds: integer(query, "gracePeriodSeconds"),
      propagationPolicy: query.get("propagationPolicy") ?? undefined,
      orphanDependents: flag(query, "orphanDependents"),
    }
    : decodeKind(DELETE_OPTIONS, body).object;
  const dryRun = [...given.dryRun ?? [], ...query.getAll("dryRun")];
  const { gracePeriodSeconds: grace, preconditions } = given;
  const options = {
    dryRun: dryRun.length > 0,
    gracePeriodSeconds: grace === undefined ? undefined : Number(grace),
    propagationPolicy: given.propagationPolicy,
    orphanDependents: given.orphanDependents,
    uid: preconditions?.uid,
    resourceVersion: preconditions?.resourceVersion,
  };
  check("delete", "DeleteOptions", { ...options, dryRun });
  return options;
}

/** Fields of DeleteOptions. */
interface GivenDeleteOptions {
  readonly dryRun?: readonly string[] | undefined;
  readonly gracePeriodSeconds?: number | bigint | undefined;
  readonly propagationPolicy?: string | undefined;
  readonly orphanDependents?: boolean | undefined;
  readonly preconditions?: {
    readonly uid?: string | undefined;
    readonly resourceVersion?: string | undefined;
  } | undefined;
}
