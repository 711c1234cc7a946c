import { checkOption, checkOptions } from "../core/api/options.ts";
import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "../core/client/transport/transport.ts";
import type { PolicyRule } from "../core/crd/rbac.ts";
import { readTarget, verbOf } from "../apiserver/request/request_info.ts";
import type { RecordedRequest } from "./request_record.ts";

const encoder = new TextEncoder();

/**
 * Access that a request needs; undefined for requests without a resource, such
 * as discovery and health checks.
 */
export function accessOf(
  method: HttpRequest["method"],
  path: string,
): RecordedRequest | undefined {
  const target = readTarget(path);
  if (target?.resource === undefined) return undefined;
  const { group, plural, subresource, namespace } = target.resource;
  return {
    verb: verbOf(method, target),
    group,
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
    namespace,
  };
}

/** Whether RBAC rules permit an access. */
export function permits(
  rules: readonly PolicyRule[],
  { verb, group, resource }: RecordedRequest,
): boolean {
  // Rules of nonResourceURLs have no groups and resources.
  const covers = (list: readonly string[] = [], value: string) =>
    list.includes(value) || list.includes("*");
  return rules.some((rule) =>
    covers(rule.apiGroups, group) && covers(rule.resources, resource) &&
    covers(rule.verbs, verb)
  );
}

/**
 * Transport that rejects requests which RBAC rules do not permit, with the
 * answer of kube-apiserver. A test can check with it, against any server, that
 * an operator's production roles are sufficient.
 */
export class RestrictedTransport implements Transport {
  readonly #inner: Transport;
  readonly #rules: readonly PolicyRule[];
  readonly #user: string;
  readonly #record: ((request: RecordedRequest) => void) | undefined;

  /**
   * Creates a transport that sends permitted requests through another one.
   *
   * @param options.user User name in rejections.
   * @param options.record Called with each permitted request.
   * @throws {TypeError | RangeError} If an argument is missing or invalid.
   */
  constructor(
    inner: Transport,
    rules: readonly PolicyRule[],
    options: {
      readonly user: string;
      readonly record?: ((request: RecordedRequest) => void) | undefined;
    },
  ) {
    const subject = "a RestrictedTransport";
    checkOption(inner, "object", { name: "inner", subject });
    checkOption(rules, "array", { name: "rules", subject });
    checkOptions(options, { user: "name", record: "function?" }, subject);
    this.#inner = inner;
    this.#rules = rules;
    this.#user = options.user;
    this.#record = options.record;
  }

  /** Sends a permitted request; answers any other with 403. */
  async send(request: HttpRequest): Promise<HttpResponse> {
    const access = accessOf(request.method, request.path);
    if (access?.resource === "selfsubjectaccessreviews") {
      return this.#review(request);
    }
    if (access !== undefined) {
      if (!permits(this.#rules, access)) {
        return this.#forbidden(access, request.path);
      }
      this.#record?.(access);
    }
    return await this.#inner.send(request);
  }

  /** Opens a permitted stream; rejects any other. */
  async connect(request: StreamRequest): Promise<StreamConnection> {
    const access = accessOf("POST", request.path);
    if (access !== undefined) {
      if (!permits(this.#rules, access)) {
        throw new Error(`Cannot open a stream: ${this.#refusal(access)}`);
      }
      this.#record?.(access);
    }
    if (this.#inner.connect === undefined) {
      throw new Error("Cannot open a stream: the transport has none");
    }
    return await this.#inner.connect(request);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** Answers a SelfSubjectAccessReview, which every user may create. */
  #review(request: HttpRequest): HttpResponse {
    const { body } = request;
    const review = JSON.parse(
      typeof body === "string" ? body : new TextDecoder().decode(body),
    ) as { spec?: { resourceAttributes?: Partial<RecordedRequest> } };
    const { verb = "get", group = "", resource = "" } =
      review.spec?.resourceAttributes ?? {};
    const allowed = permits(this.#rules, { verb, group, resource });
    return jsonAnswer(201, { ...review, status: { allowed } });
  }

  #refusal({ verb, group, resource, namespace }: RecordedRequest): string {
    const place = namespace === undefined
      ? "at the cluster scope"
      : `in the namespace "${namespace}"`;
    return `User "${this.#user}" cannot ${verb} resource "${resource}" in API group "${group}" ${place}`;
  }

  #forbidden(access: RecordedRequest, path: string): HttpResponse {
    const { group } = access;
    const [plural] = access.resource.split("/");
    const name = readTarget(path)?.resource?.name;
    const qualified = group === "" ? access.resource : `${plural}.${group}`;
    const status = {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: `${qualified}${
        name === undefined ? "" : ` "${name}"`
      } is forbidden: ${this.#refusal(access)}`,
      reason: "Forbidden",
      details: { name, group: group || undefined, kind: plural },
      code: 403,
    };
    return jsonAnswer(403, status);
  }
}

function jsonAnswer(status: number, body: unknown): HttpResponse {
  return {
    status,
    headers: { "content-type": "application/json" },
    body: (async function* () {
      yield encoder.encode(JSON.stringify(body));
    })(),
    cancel: () => Promise.resolve(),
  };
}
