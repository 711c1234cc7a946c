import type { InboundSource } from "@coracle/operator/sources";
import type { Step, SummarizedDefinition } from "@coracle/operator/workflows";
import { Event } from "../../core/kinds/core_v1.ts";
import { inboundSource } from "../../sources/inbound_source.ts";
import { intervalSchedule } from "../../workflows/conditions/reconcile_result.ts";
import { REQUESTED_AT } from "../../workflows/conditions/summarized_definition.ts";
import { summarized } from "../../workflows/conditions/summarized.ts";
import { type OperatorFixture, scenario } from "./operator_fixture.ts";
import { Release } from "./release_kind.ts";

/** A Ready that sums up a fetch, which is well when nothing is said of it. */
export const FETCHED: Partial<SummarizedDefinition<Release>> = {
  summaries: [{
    target: "Ready",
    of: ["FetchFailed", "Stored"],
    abnormal: ["FetchFailed"],
  }],
};

const KEY = { namespace: "default", name: "web" };

/** Release with a `summarized` reconciler on an embedded server. */
export class ReleaseFixture {
  readonly fixture: OperatorFixture;
  readonly key: typeof KEY = KEY;
  /** Source by which a test triggers a run. */
  readonly nudges: InboundSource<Release> = inboundSource<Release>("nudges");

  constructor(fixture: OperatorFixture) {
    this.fixture = fixture;
  }

  /** Creates the release and reconciles it by steps. */
  async play(
    steps: readonly Step<Release>[],
    definition: Partial<SummarizedDefinition<Release>> = {},
  ): Promise<void> {
    const { clock, client } = this.fixture;
    await this.fixture.install(Release);
    const operator = this.fixture.operator();
    operator.register(
      Release,
      summarized<Release>(
        Release,
        { schedule: () => intervalSchedule("1m"), clock, ...definition },
        steps,
      ),
      {
        retry: { initial: "750ms", max: "15m", jitter: 0 },
        requestAnnotations: [REQUESTED_AT],
        sources: [this.nudges],
      },
    );
    await this.fixture.start(operator);
    await client.create(Release, { metadata: KEY, spec: { version: "1" } });
    await this.fixture.settle();
  }

  /** Reads the release from the server. */
  read(): Promise<Release> {
    return this.fixture.client.get(Release, KEY);
  }

  /** Ready, as `Status Reason: message`. */
  async ready(): Promise<string> {
    return conditionText(await this.read(), "Ready");
  }

  /** Waits until Ready begins so. */
  async untilReady(beginning: string): Promise<void> {
    await this.fixture.until(async () =>
      (await this.ready()).startsWith(beginning)
    );
  }

  /** Changes the spec of the release. */
  async ask(spec: Partial<Release["spec"]>): Promise<void> {
    await this.fixture.client.patch(Release, KEY, { spec });
  }

  /** How often the release was written by patches since a request. */
  writes(from = 0): number {
    return this.fixture.requests.slice(from).filter(({ verb, resource }) =>
      verb === "patch" && resource === "releases"
    ).length;
  }

  /** Events of its reconciler for the release, as `Type Reason: message`. */
  async events(): Promise<string[]> {
    const { items } = await this.fixture.client.list(Event, {
      namespace: KEY.namespace,
    });
    return items
      .filter(({ involvedObject, reason }) =>
        // The controller reports failed runs as well.
        involvedObject.kind === "Release" && reason !== "RunFailed"
      )
      .map(({ type, reason, message }) => `${type} ${reason}: ${message}`)
      .toSorted();
  }

  /** Whether no warning and no error was logged. */
  get isQuiet(): boolean {
    return this.fixture.log.every(({ level }) =>
      level !== "warn" && level !== "error"
    );
  }
}

/** A condition as `Status Reason: message`. */
export function conditionText(object: Release, type: string): string {
  const found = object.status?.conditions?.find((one) => one.type === type);
  return found === undefined
    ? "none"
    : `${found.status} ${found.reason}: ${found.message}`;
}

/** The types of the conditions of a release, in their order. */
export function conditionTypes(object: Release): string[] {
  return (object.status?.conditions ?? []).map(({ type }) => type);
}

/** Defines a scenario of one release. */
export function releaseScenario(
  title: string,
  body: (release: ReleaseFixture) => Promise<void>,
): void {
  scenario(title, (fixture) => body(new ReleaseFixture(fixture)));
}
