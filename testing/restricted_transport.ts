import { checkOption, checkOptions } from "../core/api/option_rules.ts";
import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "../core/client/transport/transport.ts";
import type { AccessVerb, PolicyRule } from "../core/crd/rbac.ts";
import { readTarget } from "../apiserver/request/request_info.ts";
import { verbOf } from "../apiserver/router.ts";

/** What a request would do, in the words of a role. */
export interface AccessRequest {
  /** What is done. */
  readonly verb: AccessVerb;
  /** The API group; empty for the core group. */
  readonly group: string;
  /** The name in paths, with the subresource behind a slash if there is one. */
  readonly resource: string;
}

const encoder = new TextEncoder();

/**
 * What a request asks for; undefined for those that concern no resource, such
 * as discovery and health.
 */
export function accessOf(
  method: HttpRequest["method"],
  path: string,
): AccessRequest | undefined {
  const target = readTarget(path);
  if (target?.resource === undefined) return undefined;
  const { group, plural, subresource } = target.resource;
  return {
    verb: verbOf(method, target) as AccessVerb,
    group,
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
  };
}

/** Whether the rules of a role permit something. */
export function permits(
  rules: readonly PolicyRule[],
  { verb, group, resource }: AccessRequest,
): boolean {
  const covers = (list: readonly string[], value: string) =>
    list.includes(value) || list.includes("*");
  return rules.some((rule) =>
    covers(rule.apiGroups, group) && covers(rule.resources, resource) &&
    covers(rule.verbs, verb)
  );
}

/**
 * A transport that refuses what a role does not permit, with the answer that
 * kube-apiserver gives. It shows in a test, against any server, whether the
 * rights that an operator gets in production are enough.
 */
export class RestrictedTransport implements Transport {
  readonly #inner: Transport;
  readonly #rules: readonly PolicyRule[];
  readonly #user: string;

  /**
   * Makes a transport that sends through another one.
   *
   * @param inner Sends what is permitted.
   * @param rules What is permitted.
   * @param options.user Who is refused, in the answer.
   * @throws {TypeError | RangeError} If one of them is missing or makes no sense.
   */
  constructor(
    inner: Transport,
    rules: readonly PolicyRule[],
    options: { readonly user: string },
  ) {
    const subject = "a RestrictedTransport";
    checkOption(inner, "object", { name: "inner", subject });
    checkOption(rules, "array", { name: "rules", subject });
    checkOptions(options, { user: "name" }, subject);
    this.#inner = inner;
    this.#rules = rules;
    this.#user = options.user;
  }

  /** Sends a request that is permitted; refuses any other. */
  async send(request: HttpRequest): Promise<HttpResponse> {
    const access = accessOf(request.method, request.path);
    if (access?.resource === "selfsubjectaccessreviews") {
      return this.#review(request);
    }
    return access === undefined || permits(this.#rules, access)
      ? await this.#inner.send(request)
      : this.#forbidden(access, request.path);
  }

  /** Opens a stream that is permitted; refuses any other. */
  async connect(request: StreamRequest): Promise<StreamConnection> {
    const access = accessOf("POST", request.path);
    if (access !== undefined && !permits(this.#rules, access)) {
      throw new Error(
        `Cannot open a stream: ${this.#refusal(access, request.path)}`,
      );
    }
    if (this.#inner.connect === undefined) {
      throw new Error("Cannot open a stream: the transport has none");
    }
    return await this.#inner.connect(request);
  }

  /** Closes what it stands in front of. */
  close(): Promise<void> {
    return this.#inner.close();
  }

  /** Everybody may ask what they may do. */
  #review(request: HttpRequest): HttpResponse {
    const { body } = request;
    const review = JSON.parse(
      typeof body === "string" ? body : new TextDecoder().decode(body),
    ) as { spec?: { resourceAttributes?: Partial<AccessRequest> } };
    const { verb = "get", group = "", resource = "" } =
      review.spec?.resourceAttributes ?? {};
    const allowed = permits(this.#rules, { verb, group, resource });
    return jsonAnswer(201, { ...review, status: { allowed } });
  }

  #refusal(access: AccessRequest, path: string): string {
    const { verb, group, resource } = access;
    const target = readTarget(path)?.resource;
    const place = target?.namespace === undefined
      ? "at the cluster scope"
      : `in the namespace "${target.namespace}"`;
    return `User "${this.#user}" cannot ${verb} resource "${resource}" in API group "${group}" ${place}`;
  }

  #forbidden(access: AccessRequest, path: string): HttpResponse {
    const target = readTarget(path)?.resource;
    const name = target?.name;
    const qualified = access.group === ""
      ? access.resource
      : `${access.resource.split("/")[0]}.${access.group}`;
    const status = {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: `${qualified}${
        name === undefined ? "" : ` "${name}"`
      } is forbidden: ${this.#refusal(access, path)}`,
      reason: "Forbidden",
      details: { name, group: access.group || undefined, kind: target?.plural },
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
