import {
  applyJsonPatch,
  type JsonPatchOperation,
  type UntypedObject,
} from "@coracle/operator/client";
import { JsonPatchError, loadModule } from "@coracle/operator/internal";
import { badRequest, internalError } from "../status.ts";
import type { Attributes } from "./admission.ts";
import type { Match } from "./review_request.ts";
import { MutatedObject, Round } from "./mutated_object.ts";
import { type Verdict, VerdictBuilder } from "./verdict.ts";
import type { PolicyHook, WebhookHook } from "./hooks.ts";
import {
  callWebhook,
  type WebhookAnswer,
  webhookMatch,
} from "./webhook_dispatch.ts";
import { readJson } from "../exact_json.ts";

/** Mutating policies and webhooks of a request. */
export interface Mutators {
  readonly policies: readonly PolicyHook[];
  readonly webhooks: readonly WebhookHook[];
}

/** State of the mutation of a request after a round. */
export interface MutationState extends Verdict {
  /** Object in the version of the request. */
  readonly object: UntypedObject | undefined;
  /** Whether plug-ins, policies and webhooks run a second time. */
  readonly reinvoke: boolean;
  readonly policyRound: Round;
  readonly webhookRound: Round;
}

/**
 * Runs one round of mutating policies and webhooks.
 *
 * @param before State after the first round, for the second.
 */
export async function mutate(
  attributes: Attributes,
  { policies, webhooks }: Mutators,
  before: MutationState | undefined,
): Promise<MutationState> {
  const verdict = new VerdictBuilder();
  const object = new MutatedObject(attributes);
  const again = before !== undefined;
  const { policyRound = new Round(), webhookRound = new Round() } = before ??
    {};
  if (policies.length > 0) {
    const { mutateByPolicies } = await loadModule(
      import("./mutating_policies.ts"),
    );
    if (again) policyRound.again(attributes.object);
    await mutateByPolicies(object, policies, { round: policyRound, again });
    policyRound.end(await object.get());
  }
  if (again) webhookRound.again(await object.get());
  for (const [index, hook] of webhooks.entries()) {
    await mutateByWebhook(object, hook, {
      round: webhookRound,
      again,
      verdict,
      index,
    });
  }
  webhookRound.end(await object.get());
  return {
    warnings: verdict.warnings,
    annotations: verdict.annotations,
    object: await object.get(),
    reinvoke: object.reinvoke,
    policyRound,
    webhookRound,
  };
}

async function mutateByWebhook(
  mutated: MutatedObject,
  hook: WebhookHook,
  { round, again, verdict, index }: {
    readonly round: Round;
    readonly again: boolean;
    readonly verdict: VerdictBuilder;
    readonly index: number;
  },
): Promise<void> {
  const attributes = await mutated.attributes();
  const match = await webhookMatch(hook, attributes);
  const key = `${hook.configuration}/${hook.name}`;
  if (match === undefined || (again && !round.isDue(key))) return;
  const place = `webhook.admission.k8s.io/round_${
    again ? 1 : 0
  }_index_${index}`;
  const object = await mutated.in(match);
  const answer = await callWebhook(hook, attributes, {
    match,
    verdict,
    object,
    failedOpen: `failed-open.mutation.${place}`,
  });
  const changed = answer !== undefined &&
    applied(mutated, hook, { answer, object, match });
  verdict.annotations[`mutation.${place}`] = JSON.stringify({
    configuration: hook.configuration,
    webhook: hook.name,
    mutated: changed,
  });
  if (changed) round.requireAll();
  if (hook.reinvocationPolicy === "IfNeeded") round.invoked(key);
}

/** Applies the patch of a webhook; returns whether it changed the object. */
function applied(
  mutated: MutatedObject,
  hook: WebhookHook,
  { answer, object, match }: {
    readonly answer: WebhookAnswer;
    readonly object: UntypedObject | undefined;
    readonly match: Match;
  },
): boolean {
  if (answer.patch === "") return false;
  let result: unknown;
  let patch: JsonPatchOperation[] = [];
  try {
    const bytes = Uint8Array.from(
      atob(answer.patch),
      (character) => character.charCodeAt(0),
    );
    patch = readJson(
      new TextDecoder().decode(bytes),
    ) as JsonPatchOperation[];
    if (patch.length === 0) return false;
    if (object === undefined) {
      throw badRequest(
        `admission webhook ${
          JSON.stringify(hook.name)
        } attempted to modify the object, which is not supported for this operation`,
      );
    }
    result = applyJsonPatch(structuredClone(object), patch, {
      maxCopied: MAX_COPIED,
    });
  } catch (error) {
    throw internalError(patchProblem(error as Error, patch));
  }
  return mutated.set(result as UntypedObject, match);
}

/** Message of Go's library for a patch that does not apply. */
function patchProblem(
  error: Error,
  patch: readonly JsonPatchOperation[],
): string {
  const failed = error instanceof JsonPatchError && patch[error.index];
  if (!failed) return error.message;
  const { op, path } = failed;
  return op === "test"
    ? `testing value ${path} failed: test failed`
    : `${op} operation does not apply: doc is missing path: ${
      JSON.stringify(path)
    }: missing value`;
}

/** Maximum number of characters that the copy operations of a JSON patch add. */
const MAX_COPIED = 3 * 1024 * 1024;
