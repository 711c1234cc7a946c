import type { UntypedObject } from "@coracle/operator/client";
import {
  isJsonObject,
  type JsonObject,
  loadModule,
} from "@coracle/operator/internal";
import { badRequest, internalError, StatusError } from "../status.ts";
import { type Attributes, refusal } from "./admission.ts";
import { type Match, objectFor, reviewRequest } from "./review_request.ts";
import { type Verdict, VerdictBuilder } from "./verdict.ts";
import { matchOf } from "./matching.ts";
import { WebhookFailure } from "./webhook_caller.ts";
import type { WebhookHook } from "./hooks.ts";

/** Valid answer of a webhook. */
export interface WebhookAnswer {
  /** Operations of a JSON patch in base64; empty without a patch. */
  readonly patch: string;
}

/**
 * Matches a request against a webhook: rules, selectors and match conditions.
 *
 * @returns Undefined if the webhook does not apply.
 * @throws {StatusError} If a match condition fails to evaluate.
 */
export async function webhookMatch(
  hook: WebhookHook,
  attributes: Attributes,
): Promise<Match | undefined> {
  const match = matchOf({ ...hook, rules: hook.rules ?? [] }, attributes);
  const { matchConditions = [], failurePolicy } = hook;
  if (match === undefined || matchConditions.length === 0) return match;
  const { policyInput, unmetCondition } = await loadModule(
    import("./match_conditions.ts"),
  );
  const input = await policyInput(attributes, match);
  try {
    return unmetCondition(matchConditions, input) === undefined
      ? match
      : undefined;
  } catch (error) {
    if (failurePolicy === "Ignore") return undefined;
    throw refusal(attributes, (error as Error).message);
  }
}

/**
 * Calls the validating webhooks that match, at the same time.
 *
 * @throws {StatusError} The first refusal.
 */
export async function validateByWebhooks(
  attributes: Attributes,
  hooks: readonly WebhookHook[],
): Promise<Verdict> {
  const verdict = new VerdictBuilder();
  const calls: (() => Promise<unknown>)[] = [];
  for (const hook of hooks) {
    const match = await webhookMatch(hook, attributes);
    if (match === undefined) continue;
    const index = calls.length;
    calls.push(() =>
      callWebhook(hook, attributes, {
        match,
        verdict,
        failedOpen:
          `failed-open.validating.webhook.admission.k8s.io/round_0_index_${index}`,
      })
    );
  }
  const results = await Promise.allSettled(calls.map((call) => call()));
  for (const result of results) {
    if (result.status === "rejected") throw result.reason;
  }
  return verdict;
}

/**
 * Calls a webhook; returns undefined if it failed and failures are ignored.
 *
 * @throws {StatusError} If the webhook refuses the request, or fails.
 */
export async function callWebhook(
  hook: WebhookHook,
  attributes: Attributes,
  { match, verdict, failedOpen, object = attributes.object }: {
    readonly match: Match;
    readonly verdict: VerdictBuilder;
    /** Key of the audit annotation for an ignored failure. */
    readonly failedOpen: string;
    /** Object after earlier webhooks, in the version of the match. */
    readonly object?: UntypedObject | undefined;
  },
): Promise<WebhookAnswer | undefined> {
  const { name, sideEffects, failurePolicy } = hook;
  const dryRunAllowed = sideEffects === "None" ||
    sideEffects === "NoneOnDryRun";
  if (attributes.dryRun && !dryRunAllowed) {
    throw badRequest(
      `admission webhook ${JSON.stringify(name)} does not support dry run`,
    );
  }
  let response;
  try {
    response = await ask(hook, attributes, { match, object });
  } catch (error) {
    if (!(error instanceof WebhookFailure)) throw error;
    if (failurePolicy === "Ignore") {
      verdict.annotations[failedOpen] = name;
      return undefined;
    }
    throw internalError(
      `failed calling webhook ${JSON.stringify(name)}: ${error.message}`,
    );
  }
  const { auditAnnotations, warnings, allowed, status, patch = "" } = response;
  if (isJsonObject(auditAnnotations)) {
    for (const [key, value] of Object.entries(auditAnnotations)) {
      verdict.annotations[`${name}/${key}`] = String(value);
    }
  }
  if (Array.isArray(warnings)) verdict.warnings.push(...warnings.map(String));
  if (allowed !== true) throw denial(name, status);
  return { patch: String(patch) };
}

/** Sends a review; returns the checked response. */
async function ask(
  hook: WebhookHook,
  attributes: Attributes,
  { match, object }: {
    readonly match: Match;
    readonly object: UntypedObject | undefined;
  },
): Promise<JsonObject> {
  const { clientConfig, timeoutSeconds = 10, admissionReviewVersions = [] } =
    hook;
  const { webhooks, random } = attributes.request.context;
  const version = admissionReviewVersions.find((one) =>
    one === "v1" || one === "v1beta1"
  );
  if (version === undefined) {
    throw new WebhookFailure(
      "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)",
    );
  }
  const apiVersion = `admission.k8s.io/${version}`;
  const uid = random.uid();
  const review = {
    kind: "AdmissionReview",
    apiVersion,
    request: {
      uid,
      ...reviewRequest(attributes, match),
      object: await objectFor(object, match) ?? null,
      oldObject: await objectFor(attributes.oldObject, match) ?? null,
    },
  };
  let answer: unknown;
  try {
    answer = await webhooks.call(
      clientConfig,
      review,
      timeoutSeconds * 1000,
      webhooks.certificate,
    );
  } catch (error) {
    throw new WebhookFailure(
      `failed to call webhook: ${(error as Error).message}`,
    );
  }
  const problem = version === "v1"
    ? answerProblem(answer, { uid, mutating: hook.mutating })
    : isJsonObject(answer) && isJsonObject(answer.response)
    ? undefined
    : "webhook response was absent";
  if (problem !== undefined) {
    throw new WebhookFailure(`received invalid webhook response: ${problem}`);
  }
  return (answer as { readonly response: JsonObject }).response;
}

/** Problem of an AdmissionReview of version v1; undefined if it is valid. */
function answerProblem(
  answer: unknown,
  { uid, mutating }: { readonly uid: string; readonly mutating: boolean },
): string | undefined {
  const { response, apiVersion = "", kind = "" } = isJsonObject(answer)
    ? answer
    : {};
  if (!isJsonObject(response)) return "webhook response was absent";
  if (response.uid !== uid) {
    return `expected response.uid="${uid}", got "${response.uid ?? ""}"`;
  }
  if (apiVersion !== "admission.k8s.io/v1" || kind !== "AdmissionReview") {
    const shown = String(apiVersion).includes("/")
      ? apiVersion
      : `/${apiVersion}`;
    return `expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${shown}, Kind=${kind}`;
  }
  const patch = Boolean(response.patch);
  const { patchType } = response;
  const typed = patchType !== undefined && patchType !== null;
  if (!mutating) {
    if (patch) return "validating webhook may not return response.patch";
    return typed
      ? "validating webhook may not return response.patchType"
      : undefined;
  }
  if (patch && !typed) {
    return "webhook returned response.patch but not response.patchType";
  }
  if (!patch && typed) {
    return "webhook returned response.patchType but not response.patch";
  }
  if (patchType === "") {
    return 'webhook returned invalid response.patchType of ""';
  }
  return typed && patchType !== "JSONPatch"
    ? `unsupported patch type ${JSON.stringify(patchType)}`
    : undefined;
}

/** Error of a request that a webhook refused. */
function denial(name: string, result: unknown): StatusError {
  const status = isJsonObject(result) ? result : {};
  const { code = 0, message, reason, details } = status as {
    code?: number;
    message?: string;
    reason?: string;
    details?: JsonObject;
  };
  const deniedBy = `admission webhook ${
    JSON.stringify(name)
  } denied the request`;
  const why = message || reason;
  return new StatusError({
    code: Math.max(code, 400),
    reason: reason || undefined,
    message: why ? `${deniedBy}: ${why}` : `${deniedBy} without explanation`,
    details,
  });
}
