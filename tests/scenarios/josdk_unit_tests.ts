import { JOSDK_CONTROLLER_UNIT_TESTS } from "./josdk_controller_unit_tests.ts";
import { JOSDK_EVENT_UNIT_TESTS } from "./josdk_event_unit_tests.ts";

/**
 * The unit tests of the Java Operator SDK about what the controller does, and
 * which test here shows the same: by suite, by the title of our test. A title
 * stands here without the names in brackets that it may end with; the cases are
 * separated by white space.
 */
export const JOSDK_UNIT_TESTS: Readonly<
  Record<string, Readonly<Record<string, string>>>
> = {
  ...JOSDK_CONTROLLER_UNIT_TESTS,
  ...JOSDK_EVENT_UNIT_TESTS,
};

/** Those that have no counterpart here, by the reason. */
export const WITHOUT_COUNTERPART: Readonly<
  Record<string, Readonly<Record<string, string>>>
> = {
  "A client always has a namespace, which is the default of the Lease's": {
    LeaderElectionManagerTest: "testFailedToInitInferLeaseNamespace",
  },
  "Access is reviewed for the Lease itself, so that the server reads the rules":
    {
      LeaderElectionManagerTest:
        "testInitPermissionsMultipleRulesWithResourceName",
    },
  "What no source has is written all the same, and its event concerns nobody": {
    ResourceOperationsTest: `
      resourcePatchThrowsWhenNoEventSourceFound
      createWithNullEventSourceFallsBackToForceFilter
    `,
  },
  "Which event source has a kind is looked up, and several are all told of a write":
    {
      ResourceOperationsTest: `
      resourcePatchUsesFirstEventSourceIfMultipleEventSourcesPresent
      resourcePatchThrowsWhenEventSourceIsNotManagedInformer
    `,
    },
  "The type of its options has no match": {
    ResourceOperationsTest: "createRejectsMatcher",
  },
  "Runs do not tell event sources of what they wrote: the cache has the answer":
    {
      EventProcessorTest: "notUpdatesEventSourceHandlerIfResourceUpdated",
    },
  "Nothing is left of a deleted object when its retries are used up: it has no further run":
    {
      EventProcessorTest:
        "afterRetryExhaustedAdditionalEventTriggerReconciliationWhenDeleteEventPresent",
    },
  "Here the observed generation is written after every run that went well": {
    ReconciliationDispatcherTest: `
      doesNotUpdatesObservedGenerationIfStatusIsNotPatchedWhenUsingSSA
      doesNotPatchObservedGenerationOnCustomResourcePatch
    `,
  },
  "Nothing is remembered of an object before its first event": {
    ResourceStateManagerTest: "returnsNoEventPresentIfNotMarkedYet",
  },
  "A write is a handle, which cannot end without having begun": {
    EventFilterSupportTest:
      "addToOwnResourceVersionsIsNoOpWithoutEventingDetail",
  },
  "Ghosts are what the sweep of a relist finds, which knows only objects that it holds":
    {
      EventFilterSupportTest:
        "handleGhostResourceRemovalIsNoOpForUnknownResource",
    },
  "An informer never stops by itself: it heals, and health tells": {
    InformerEventSourceTest:
      "informerStoppedHandlerShouldBeCalledWhenInformerStops",
  },
  "Caches are merged with own writes when these are answered, so that reads and indexes have one state to look at":
    {
      InformerEventSourceTest: `
      listExcludesResourceWhenTempCacheContainsNewerVersionThatNoLongerMatchesPredicate
      listKeepsResourceWhenNotInTempCache byIndexStreamReplacesFromTempCache
      byIndexStreamSkipsNewerTempCacheResourceWhenIndexedValueChanged
      keysIncludeGhostResourceKeys keysDoNotDuplicateExistingKeys
    `,
    },
  "Kubernetes promises that resource versions can be compared": {
    TemporaryResourceCacheTest: "nonComparableResourceVersionsDisables",
  },
  "Workflows need no threads of their own": {
    ConfigLoaderTest: "applyConfigsAppliesConcurrentWorkflowExecutorThreads",
  },
};

/** How many cases each suite has. */
export const JOSDK_UNIT_CASES: Readonly<Record<string, number>> = {
  LeaderElectionManagerTest: 5,
  DefaultContextTest: 18,
  ResourceOperationsTest: 28,
  EventProcessorTest: 34,
  ReconciliationDispatcherTest: 34,
  ResourceStateManagerTest: 9,
  LinearRateLimiterTest: 5,
  ControllerEventSourceTest: 14,
  InternalEventFiltersTest: 6,
  EventFilterSupportTest: 41,
  EventFilterWindowTest: 27,
  InformerEventSourceTest: 37,
  TemporaryResourceCacheTest: 18,
  TimerEventSourceTest: 7,
  ExpectationManagerTest: 13,
  PatchMatchersTest: 12,
  GenericRetryExecutionTest: 9,
  ConfigLoaderTest: 29,
};
