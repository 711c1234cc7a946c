import { type Clock, milliseconds } from "@coracle/operator/client";
import { checkOptions, type OptionRules } from "@coracle/operator/internal";
import {
  jsonResponse,
  type ServerRequest,
  type ServerResponse,
} from "../http/exchange.ts";
import type { Random } from "../random.ts";
import { readTarget, verbOf } from "../request/request_info.ts";
import type { GroupResource } from "../registry.ts";
import { conflict, StatusError } from "../status.ts";
import type { JournalContent } from "../storage/file_journal.ts";
import {
  type ActiveFault,
  checkFaultMatch,
  checkFaultRule,
  type FaultEffect,
  type FaultMatch,
  type FaultRule,
  type FaultSubject,
  matchesFault,
} from "./fault_rule.ts";
import type { Faults, RestartOptions } from "./faults.ts";
import { type BodyFaults, withBodyFaults } from "./faulty_stream.ts";
import { changeObjectOf, comparesVersions } from "./other_writer.ts";
import { type Answer, staleAnswer } from "./stale_answer.ts";

/** Open watch with fault injection. */
export interface FaultyWatch {
  readonly resource: GroupResource;
  /** Namespace of the watch; undefined for all namespaces. */
  readonly namespace: string | undefined;
  /** Breaks the connection of the watch. */
  cut(): void;
  /** Ends the watch. */
  end(): void;
  /** Stalls the watch: the connection stays open but receives nothing. */
  stall(): void;
  /** Ends the watch with an ERROR event. */
  fail(error: StatusError): void;
}

/** Operations on a server that fault injection needs. */
export interface FaultTarget {
  watches(): Iterable<FaultyWatch>;
  /** Adds the credentials of an administrator to a request without any. */
  authorized(request: ServerRequest): ServerRequest;
  compact(): void;
  retireConnections(): void;
  dropConnections(): void;
  /** Sets a token, by default a random one, and returns it. */
  setToken(token: string | undefined): string;
  /** Stops the server; returns its objects if they must be kept. */
  stop(keepData: boolean): Promise<JournalContent | undefined>;
  start(content: JournalContent | undefined): Promise<void>;
}

const RESTART_RULES: OptionRules<RestartOptions> = {
  downFor: "duration?",
  keepData: "boolean?",
};

interface Rule {
  readonly rule: FaultRule;
  hits: number;
  seen: number;
  /** Functions that end lasting effects when the rule is removed. */
  readonly endings: Set<() => void>;
}

/**
 * Fault injector of one server: holds the rules and applies them to requests.
 */
export class FaultInjector implements Faults {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #server: FaultTarget;
  readonly #rules: Set<Rule> = new Set();
  /** Functions that end the running delays. */
  readonly #delays: Set<() => void> = new Set();
  /** Restart that is under way; it never rejects. */
  #restarting: Promise<void> | undefined;
  #isStopped = false;

  constructor(
    { clock, random, server }: {
      readonly clock: Clock;
      readonly random: Random;
      readonly server: FaultTarget;
    },
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#server = server;
  }

  add(rule: FaultRule): ActiveFault {
    checkFaultRule(rule);
    const active: Rule = { rule, hits: 0, seen: 0, endings: new Set() };
    this.#rules.add(active);
    return {
      get hits() {
        return active.hits;
      },
      remove: () => this.#remove(active),
    };
  }

  clear(): void {
    for (const rule of this.#rules) this.#remove(rule);
  }

  #remove(rule: Rule): void {
    this.#rules.delete(rule);
    for (const end of rule.endings) end();
    rule.endings.clear();
  }

  cutWatches(match: FaultMatch = {}): number {
    return this.#eachWatch(match, (watch) => watch.cut());
  }

  endWatches(match: FaultMatch = {}): number {
    return this.#eachWatch(match, (watch) => watch.end());
  }

  stallWatches(match: FaultMatch = {}): number {
    return this.#eachWatch(match, (watch) => watch.stall());
  }

  expireWatches(match: FaultMatch = {}): number {
    return this.#eachWatch(match, (watch) => watch.fail(tooOld()));
  }

  #eachWatch(match: FaultMatch, act: (watch: FaultyWatch) => void): number {
    checkFaultMatch(match);
    const watches = [...this.#server.watches()].filter((watch) => {
      const { group, plural } = watch.resource;
      return matchesFault(match, {
        verb: "watch",
        resource: plural,
        group,
        namespace: watch.namespace ?? "",
        name: "",
        subresource: "",
      });
    });
    for (const watch of watches) act(watch);
    return watches.length;
  }

  compact(): void {
    this.#server.compact();
  }

  goAway(): void {
    this.#server.retireConnections();
  }

  dropConnections(): void {
    this.#server.dropConnections();
  }

  rotateToken(token?: string): string {
    return this.#server.setToken(token);
  }

  async restart(options: RestartOptions = {}): Promise<void> {
    checkOptions(options, RESTART_RULES, "faults.restart()");
    while (this.#restarting !== undefined) await this.#restarting;
    const restarted = this.#restart(options);
    this.#restarting = restarted.catch(() => {}).finally(() => {
      this.#restarting = undefined;
    });
    await restarted;
  }

  async #restart(
    { downFor = 0, keepData = true }: RestartOptions,
  ): Promise<void> {
    const content = await this.#server.stop(keepData);
    const downtime = milliseconds(downFor);
    if (downtime > 0) await this.#wait(downtime);
    if (this.#isStopped) return;
    await this.#server.start(keepData ? content : undefined);
  }

  /**
   * Ends every delay; called when the server stops.
   *
   * @returns Promise of the end of a restart that is under way.
   */
  stop(): Promise<void> | undefined {
    this.#isStopped = true;
    this.clear();
    for (const end of this.#delays) end();
    return this.#restarting;
  }

  /**
   * Answers a request, with the effects of matching faults.
   *
   * @param request The request.
   * @param answer Function that answers this request, or a replacement, without
   * faults; undefined while the server is down.
   * @returns Undefined if the connection must be broken.
   */
  async around(
    request: ServerRequest,
    answer: Answer,
  ): Promise<ServerResponse | undefined> {
    if (this.#rules.size === 0) return await answer(request);
    const subject = subjectOf(request);
    const hit = [...this.#rules].filter((rule) => this.#hits(rule, subject));
    let ask = answer;
    for (const { rule: { effect }, endings } of hit) {
      if ("delay" in effect) {
        await this.#wait(effect.delay);
        if (this.#isStopped) return undefined;
      } else if ("reset" in effect) {
        if (effect.reset === "answer") await answer(request);
        return undefined;
      } else if ("staleAt" in effect) {
        ask = staleAnswer(answer, { revision: effect.staleAt, endings });
      } else {
        const refusal = "conflict" in effect
          ? await this.#conflict(request, subject, answer)
          : refusalOf(effect, subject);
        if (refusal) {
          return jsonResponse(
            refusal.status.code,
            refusal.status,
            refusal.headers,
          );
        }
      }
    }
    const response = await ask(request);
    return response && hit.reduce(
      (result, { rule: { effect } }) =>
        "goAway" in effect
          ? { ...result, headers: { ...result.headers, connection: "close" } }
          : withBodyFaults(result, effect as BodyFaults),
      response,
    );
  }

  /**
   * Lets another client change the object of a write.
   *
   * @returns Refusal of the write; undefined if the server answers it.
   */
  async #conflict(
    request: ServerRequest,
    { group, resource, name }: FaultSubject,
    answer: Answer,
  ): Promise<StatusError | undefined> {
    const asOther: Answer = (change) => answer(this.#server.authorized(change));
    const hasChanged = await changeObjectOf(request, asOther);
    if (!hasChanged || comparesVersions(request)) return undefined;
    return conflict(
      { group, kind: resource, name },
      "the object has been modified; please apply your changes to the latest version and try again",
    );
  }

  #hits(active: Rule, subject: FaultSubject): boolean {
    const { rule } = active;
    const { probability = 1, count = Infinity, skip = 0 } = rule;
    if (!matchesFault(rule, subject) || !isPossible(rule.effect, subject)) {
      return false;
    }
    if (active.seen++ < skip) return false;
    if (probability < 1 && this.#random.next() >= probability) return false;
    if (++active.hits >= count) this.#rules.delete(active);
    return true;
  }

  /** Waits for a time, or until the server is stopped. */
  #wait(delay: number): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        timer.cancel();
        this.#delays.delete(end);
        resolve();
      };
      const timer = this.#clock.setTimer(end, delay);
      this.#delays.add(end);
    });
  }
}

function subjectOf(
  request: ServerRequest,
): FaultSubject & { query: URLSearchParams } {
  const info = readTarget(request.target);
  const { resource } = info ?? {};
  return {
    verb: info === undefined ? "" : verbOf(request.method, info),
    resource: resource?.plural ?? "",
    group: resource?.group ?? "",
    namespace: resource?.namespace ?? "",
    name: resource?.name ?? "",
    subresource: resource?.subresource ?? "",
    query: info?.query ?? new URLSearchParams(),
  };
}

/** Whether an effect applies to a kind of request. */
function isPossible(
  effect: FaultEffect,
  subject: FaultSubject & { readonly query?: URLSearchParams },
): boolean {
  const { verb, query } = subject;
  if ("conflict" in effect) return verb === "update" || verb === "patch";
  if ("expired" in effect) {
    return (verb === "list" && query?.has("continue") === true) ||
      (verb === "watch" && Number(query?.get("resourceVersion") ?? 0) > 0);
  }
  if ("staleAt" in effect) return verb === "list" || verb === "watch";
  if (
    "stallAfter" in effect || "withoutEndBookmark" in effect ||
    "withhold" in effect
  ) {
    return verb === "watch";
  }
  return true;
}

function refusalOf(
  effect: FaultEffect,
  { group, resource, name }: FaultSubject,
): StatusError | undefined {
  if ("expired" in effect) return tooOld();
  if (!("status" in effect)) return undefined;
  const { status, retryAfter } = effect;
  const refused = `${resource}${group && `.${group}`} "${name}" is`;
  return new StatusError({
    code: status,
    reason: REASONS[status],
    message: status === 403
      ? `${refused} forbidden: a fault was injected`
      : status === 422
      ? `${refused} invalid: a fault was injected`
      : MESSAGES[status],
    details: retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter },
  }, retryAfter === undefined ? {} : { "retry-after": String(retryAfter) });
}

const REASONS = {
  403: "Forbidden",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  502: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
} as const;

const MESSAGES = {
  429: "Too many requests, please try again later.",
  500: "Internal error occurred: a fault was injected",
  502: "bad gateway",
  503: "the server is currently unable to handle the request",
  504: "Timeout: request did not complete within the allowed duration",
} as const;

function tooOld(): StatusError {
  return new StatusError({
    code: 410,
    reason: "Expired",
    message: "too old resource version",
  });
}
