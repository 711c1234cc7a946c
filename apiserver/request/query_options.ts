import type { StatusCause } from "../../core/api/api_error.ts";
import { badRequest, fieldError, invalid, StatusError } from "../status.ts";

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
  /** Undefined when the parameter is absent. */
  readonly force: boolean | undefined;
}

/** Handling of fields that are not in the schema. */
export type FieldValidation = "Strict" | "Warn" | "Ignore";

/** Error 422: `ListOptions.meta.k8s.io "" is invalid`. */
function invalidOptions(
  kind: string,
  causes: readonly StatusCause[],
): StatusError {
  return invalid({ group: "meta.k8s.io", kind }, causes);
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
 * @throws {StatusError} 400 for a list and 500 for other reads, as kube-apiserver,
 * if it is not a number.
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
    throw list ? badRequest(message) : new StatusError({ code: 500, message });
  }
  return Number(text);
}

/**
 * Parses the parameters of a list or watch.
 *
 * @param query Query parameters.
 * @param watch Whether the path is a watch path.
 * @throws {StatusError} 400, 422 or 500 if they are invalid.
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
  const causes = options.watch
    ? watchProblems(options)
    : listProblems(options, query.get("resourceVersion") ?? "");
  if (causes.length > 0) throw invalidOptions("ListOptions", causes);
  return {
    ...options,
    resourceVersion: readResourceVersion(query.get("resourceVersion"), {
      list: !options.watch,
    }),
  };
}

const MATCH = "resourceVersionMatch";

function listProblems(
  options: Omit<ListOptions, "resourceVersion">,
  resourceVersion: string,
): StatusCause[] {
  const { resourceVersionMatch: match } = options;
  const causes: StatusCause[] = [];
  if (match !== "") {
    if (resourceVersion === "") {
      causes.push(fieldError.forbidden(
        MATCH,
        "resourceVersionMatch is forbidden unless resourceVersion is provided",
      ));
    }
    if (options.continue !== "") {
      causes.push(fieldError.forbidden(
        MATCH,
        "resourceVersionMatch is forbidden when continue is provided",
      ));
    }
    if (match !== "Exact" && match !== "NotOlderThan") {
      causes.push(
        fieldError.notSupported(MATCH, match, ["Exact", "NotOlderThan", ""]),
      );
    }
    if (match === "Exact" && resourceVersion === "0") {
      causes.push(fieldError.forbidden(
        MATCH,
        'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
      ));
    }
  }
  if (options.sendInitialEvents !== undefined) {
    causes.push(fieldError.forbidden(
      "sendInitialEvents",
      "sendInitialEvents is forbidden for list",
    ));
  }
  return causes;
}

function watchProblems(
  options: Omit<ListOptions, "resourceVersion">,
): StatusCause[] {
  const { resourceVersionMatch: match, sendInitialEvents } = options;
  const causes: StatusCause[] = [];
  if (sendInitialEvents !== undefined && match !== "NotOlderThan") {
    causes.push(fieldError.forbidden(
      MATCH,
      "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    ));
  }
  if (match !== "") {
    if (sendInitialEvents === undefined) {
      causes.push(fieldError.forbidden(
        MATCH,
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
      ));
    }
    if (match !== "NotOlderThan") {
      causes.push(fieldError.notSupported(MATCH, match, ["NotOlderThan"]));
    }
  }
  if (options.continue !== "") {
    causes.push(fieldError.forbidden(
      MATCH,
      "resourceVersionMatch is forbidden when continue is provided",
    ));
  }
  return causes;
}

/** Options kind that errors of a write name. */
export type WriteKind = "CreateOptions" | "UpdateOptions" | "PatchOptions";

/**
 * Parses the parameters of a write.
 *
 * @param query Query parameters.
 * @param kind Options kind of the write.
 * @param request User agent, and whether the write is a server-side apply.
 * @throws {StatusError} 422 if they are invalid.
 */
export function readWriteOptions(
  query: URLSearchParams,
  kind: WriteKind,
  request: { readonly userAgent: string | undefined; readonly apply: boolean },
): WriteOptions {
  const manager = query.get("fieldManager") ?? "";
  const force = flag(query, "force");
  const fieldValidation = query.get("fieldValidation") ?? "";
  const causes: StatusCause[] = [];
  if (request.apply) {
    if (manager === "") {
      causes.push(
        fieldError.required("fieldManager", "is required for apply patch"),
      );
    }
  } else if (force !== undefined && kind === "PatchOptions") {
    causes.push(
      fieldError.forbidden("force", "may not be specified for non-apply patch"),
    );
  }
  causes.push(...managerProblems(manager));
  causes.push(...dryRunProblems(query.getAll("dryRun")));
  if (!["", "Ignore", "Warn", "Strict"].includes(fieldValidation)) {
    causes.push(
      fieldError.notSupported("fieldValidation", fieldValidation, [
        "",
        "Ignore",
        "Strict",
        "Warn",
      ]),
    );
  }
  if (causes.length > 0) throw invalidOptions(kind, causes);
  return {
    dryRun: query.getAll("dryRun").length > 0,
    fieldManager: manager === "" ? agentName(request.userAgent) : manager,
    fieldValidation: (fieldValidation || "Warn") as FieldValidation,
    force,
  };
}

/** User agent up to its first slash, the default field manager. */
function agentName(userAgent: string | undefined): string {
  const name = (userAgent ?? "unknown").split("/")[0] ?? "";
  return name.slice(0, 128);
}

function managerProblems(manager: string): StatusCause[] {
  // Almost all are short printable ASCII.
  if (/^[ -~]{0,128}$/.test(manager)) return [];
  if (new TextEncoder().encode(manager).length > 128) {
    return [fieldError.tooLong("fieldManager", 128)];
  }
  const causes: StatusCause[] = [];
  let position = 0;
  for (const character of manager) {
    const code = character.codePointAt(0) ?? 0;
    if (/[\p{C}\p{Zl}\p{Zp}]/u.test(character) || /[^\S ]/.test(character)) {
      causes.push(fieldError.invalid(
        "fieldManager",
        manager,
        `invalid character U+${
          code.toString(16).toUpperCase().padStart(4, "0")
        } (at position ${position})`,
      ));
    }
    position += new TextEncoder().encode(character).length;
  }
  return causes;
}

/** Validates `dryRun`; the only valid value is `All`. */
export function dryRunProblems(values: readonly string[]): StatusCause[] {
  if (values.every((value) => value === "All")) return [];
  return [{
    reason: "FieldValueNotSupported",
    message: `Unsupported value: ${
      JSON.stringify(values)
    }: supported values: "All"`,
    field: "dryRun",
  }];
}

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
 * @throws {StatusError} 400, 422 or 500 if they are invalid.
 */
export function readDeleteOptions(
  query: URLSearchParams,
  body: Readonly<Record<string, unknown>> | undefined,
): DeleteOptions {
  const given = body ?? {
    gracePeriodSeconds: integer(query, "gracePeriodSeconds"),
    propagationPolicy: query.get("propagationPolicy") ?? undefined,
    orphanDependents: flag(query, "orphanDependents"),
    dryRun: query.getAll("dryRun"),
  };
  const dryRun = [
    ...texts(given.dryRun),
    ...(body === undefined ? [] : query.getAll("dryRun")),
  ];
  const preconditions = (given as Record<string, unknown>).preconditions as
    | Record<string, unknown>
    | undefined;
  const options = {
    dryRun: dryRun.length > 0,
    gracePeriodSeconds: typed(given.gracePeriodSeconds, TYPE_TESTS.number),
    propagationPolicy: typed(given.propagationPolicy, TYPE_TESTS.string),
    orphanDependents: typed(given.orphanDependents, TYPE_TESTS.boolean),
    uid: typed(preconditions?.uid, TYPE_TESTS.string),
    resourceVersion: typed(preconditions?.resourceVersion, TYPE_TESTS.string),
  };
  const causes = [
    ...policyProblems(options),
    ...dryRunProblems(dryRun),
  ];
  if (causes.length > 0) throw invalidOptions("DeleteOptions", causes);
  return options;
}

const POLICIES = ["Foreground", "Background", "Orphan"];

function policyProblems(
  options: Pick<DeleteOptions, "propagationPolicy" | "orphanDependents">,
): StatusCause[] {
  const { propagationPolicy: policy, orphanDependents } = options;
  if (policy === undefined) return [];
  if (orphanDependents !== undefined) {
    return [fieldError.invalid(
      "propagationPolicy",
      policy,
      "orphanDependents and deletionPropagation cannot be both set",
    )];
  }
  return POLICIES.includes(policy) ? [] : [
    fieldError.notSupported("propagationPolicy", policy, [...POLICIES, "nil"]),
  ];
}

function texts(value: unknown): string[] {
  return Array.isArray(value)
    ? value.filter((item): item is string => typeof item === "string")
    : [];
}

const TYPE_TESTS = {
  number: (value: unknown): value is number => typeof value === "number",
  string: (value: unknown): value is string => typeof value === "string",
  boolean: (value: unknown): value is boolean => typeof value === "boolean",
};

/** Field of the options; rejects other types as Go does. */
function typed<T>(
  value: unknown,
  fits: (value: unknown) => value is T,
): T | undefined {
  if (value === undefined || value === null) return undefined;
  if (fits(value)) return value;
  throw new StatusError({
    code: 500,
    message:
      `json: cannot unmarshal ${typeof value} into Go struct field of DeleteOptions`,
  });
}
