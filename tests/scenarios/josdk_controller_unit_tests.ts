/** The suites about the settings of controllers, their runs and their writes. */
export const JOSDK_CONTROLLER_UNIT_TESTS: Readonly<
  Record<string, Readonly<Record<string, string>>>
> = {
  LeaderElectionManagerTest: {
    "Only the leader runs; when it stops another takes over with warm caches":
      "testInitInferLeaseNamespace",
    "A replica that lost its lease steps down without exiting, gets no write through, and can lead again":
      "stopLeadingDoesNotInvokeSystemExitWhenStopWasCalledFirst",
    "Without the right to use the lease the start fails, and says which is missing":
      "testFailedToInitMissingPermission",
  },
  DefaultContextTest: {
    "An inactive node is not touched and reads as nothing; the rest reconciles":
      `
      getSecondaryResourceReturnsEmptyOptionalOnNonActivatedDRType
      getSecondaryResourceByNameAndNamespaceReturnsEmptyWhenNoEventSourceButWorkflowManaged
      getSecondaryResourcesAsStreamByEventSourceReturnsEmptyWhenWorkflowManaged
    `,
    "A run reads one object from the cache, by name and namespace": `
      getSecondaryResourceByNameAndNamespaceReturnsFromCacheFastPath
      getSecondaryResourceByNameAndNamespaceReturnsEmptyOnCacheMiss
      getSecondaryResourceByNameUsesPrimaryNamespace
    `,
    "A run reads what no source has from the API server, also without a namespace":
      `
      getSecondaryResourceByNameAndNamespaceFallsBackToGetSecondaryResources
      getSecondaryResourceByNameAndNamespaceFallbackReturnsEmptyWhenNoMatch
    `,
    "A run finds its secondaries by kind and by source, and says where there is none":
      `
      getSecondaryResourceByNameAndNamespaceRethrowsWhenNoEventSourceAndNotWorkflowManaged
      getSecondaryResourcesAsStreamByEventSourceUsesResourceCacheFastPath
      getSecondaryResourcesAsStreamByEventSourceFallsBackToGetSecondaryResources
      getSecondaryResourcesAsStreamByEventSourceRethrowsWhenNotWorkflowManaged
      latestDistinctHandlesEmptyStream
    `,
    "A cluster-scoped object may have parts in a namespace, and is cleaned up":
      "getSecondaryResourcesAsStreamByEventSourceFastPathOnClusterScopedPrimary",
    "onError may write the object, and is told of the first failure as such":
      "setRetryInfo",
    "An object in two sources is listed once, in its newest state":
      "latestDistinctKeepsOnlyLatestResourceVersion",
    "Making, changing and deleting a secondary shows in the status":
      "latestDistinctHandlesSingleResource",
    "compareResourceVersions orders numbers of any length":
      "latestDistinctComparesNumericVersionsCorrectly",
  },
  ResourceOperationsTest: {
    "A reconciler adds and takes away finalizers of its own by the context": `
      addsFinalizer removesFinalizer
    `,
    "The finalizer is there before the first work": "addsFinalizerWithSSA",
    "changeFinalizers finds ours again when another one was removed meanwhile":
      "retriesAddingFinalizerWithoutSSA",
    "changeFinalizers ends quietly when the object is gone or another one":
      "nullResourceIsGracefullyHandledOnFinalizerRemovalRetry",
    "Another finalizer that goes during a slow cleanup does not disturb it":
      "retriesFinalizerRemovalWithFreshResource",
    "Every way to write a secondary is seen by the next read and causes no run":
      `
      resourcePatchWithSingleEventSource
      createDefaultForceFiltersAndCallsClientCreate
    `,
    "What the cache shows to be so already is not sent, and a change is": `
      matcherMatchingSkipsUpdateAndReturnsActual
      matcherNotMatchingProceedsToEventFilteringUpdate
      updateWithMatcherMatchingSkipsWrite
      updateWithMatcherNotMatchingFiltersAndWrites
      jsonMergePatchWithEventSourceCallsClientMergePatch
      updateStatusCacheOnlyCallsClientUpdateStatus
    `,
    "A write without match is sent although nothing changes, and triggers only when told to":
      `
      onlyCacheModeSkipsEventFiltering
      updateCacheOnlyCachesAndCallsClientUpdate
      updateForceFilterFiltersAndCallsClientUpdate
      jsonMergePatchCacheOnlyCallsClientMergePatch
    `,
    "A replacement needs the version that was read, and loses nobody's change":
      `
      filterWithOptimisticLockingFiltersWhenResourceVersionPresent
      updateFilterWithOptimisticLockingFiltersWhenResourceVersionPresent
    `,
    "A write that asks for it triggers as one of others would": `
      createCacheOnlyCachesAndCallsClientCreate
      serverSideApplyCacheOnlyCallsClientSsaPatch
    `,
    "Every way to write the primary is seen by the next read and causes no run":
      "jsonMergePatchPrimaryCallsClientMergePatch",
  },
  EventProcessorTest: {
    "EventProcessor runs once for many events, and once more for those during a run":
      `
      dispatchesEventsIfNoExecutionInProgress
      ifExecutionInProgressWaitsUntilItsFinished
    `,
    "EventProcessor drops a waiting run whose object is gone without a word": `
      skipProcessingIfLatestCustomResourceNotInCache
      completesSubmissionIfResourceDisappearsFromCacheBeforeExecution
      doesNotReportReconciliationFinishedIfItNeverStarted
    `,
    "EventProcessor retries with growing pauses until a run succeeds":
      "schedulesAnEventRetryOnException",
    "EventProcessor is not driven in a hot loop by events and failures":
      "executesTheControllerInstantlyAfterErrorIfNewEventsReceived",
    "EventProcessor begins a retry series anew after a success":
      "successfulExecutionResetsTheRetry",
    "decideAfterRun plans the visit that a run asked for":
      "scheduleTimedEventIfInstructedByPostExecutionControl",
    "EventProcessor visits an object as asked although an event came meanwhile":
      "reScheduleOnlyIfNotExecutedEventsReceivedMeanwhile",
    "EventProcessor begins nothing that was queued when it is paused": `
      doNotFireEventsIfClosing
      executionOfReconciliationShouldNotStartIfProcessorStopped
    `,
    "EventProcessor cancels what was planned when a run ends well":
      "cancelScheduleOnceEventsOnSuccessfulExecution",
    "EventProcessor ignores what sources trigger for primaries that it does not know":
      "skipsGenericEventIfNoResourceEventReceivedBefore",
    "EventProcessor runs nothing before it is resumed, and loses nothing":
      "startProcessedMarkedEventReceivedBefore",
    "decideAfterRun drops all deadlines when the finalizer is gone":
      "notReschedulesAfterTheFinalizerRemoveProcessed",
    "EventProcessor ignores an object whose finalizer is gone until it is a new one":
      `
      skipEventProcessingIfFinalizerRemoveProcessed
      newResourceAfterMissedDeleteEvent
    `,
    "EventProcessor holds events back by the limiter, also those of a deletion":
      `
      rateLimitsReconciliationSubmission rateLimitsDeleteEventInAllEventMode
    `,
    "EventProcessor runs at the latest after the maximal interval":
      "schedulesRetryForMarReconciliationInterval",
    "EventProcessor makes exhaustion a state that can be seen, and goes on by interval":
      "schedulesRetryForMarReconciliationIntervalIfRetryExhausted",
    "decideAfterRun keeps a retry that is planned well ahead": `
      preservesRetryDeadlineWhenRemainingDurationAboveThreshold
      consumesRetryAttemptWhenRemainingDurationAtOrBelowThreshold
    `,
    "decideAfterRun retries with growing pauses and then gives up":
      "firstFailureSchedulesUsingNextDelayWhenNoRemainingDuration",
    "EventProcessor forgets what is deleted while it is paused":
      "cleansUpForDeleteEventEvenIfProcessorNotStarted",
    "EventProcessor hands a deletion to reconcile in all-events mode, and retries it":
      `
      triggerOnAllEventProcessesDeleteEvents
      triggerOnAllEventDeleteEventAfterEventsProcessed
      triggerOnAllEventRetriesDeleteEventsError
    `,
    "EventProcessor tells an object that is deleted during its run in all-events mode, at once after it":
      `
      triggerOnAllEventDeleteEventInstantlyAfterEvents
      passesResourceFromStateToDispatcher
    `,
    "EventProcessor hands an event of a source to the retry of a deletion in all-events mode":
      "processesAdditionalEventWhileInDeleteModeRetry",
  },
  ReconciliationDispatcherTest: {
    "The finalizer is there before the first work": `
      addFinalizerOnNewResource
      addsFinalizerIfNotMarkedForDeletionAndEmptyCustomResourceReturned
    `,
    "Finalizers come and go without server-side apply":
      "addFinalizerOnNewResourceWithoutSSA",
    "decideStep adds the finalizer before the first work": `
      callCreateOrUpdateOnNewResourceIfFinalizerSet
      callCreateOrUpdateOnModifiedResourceIfFinalizerSet
    `,
    "patchResourceAndStatus writes both":
      "patchesBothResourceAndStatusIfFinalizerSet",
    "An own status write causes no run, whichever way it is sent":
      "patchesStatus",
    "An operator makes what an object asks for, reports, ignores labels and cleans up":
      `
      callsDeleteIfObjectHasFinalizerAndMarkedForDelete
      removesDefaultFinalizerOnDeleteIfSet
    `,
    "decideStep leaves deletion alone without finalizers": `
      doesNotCallDeleteOnControllerIfMarkedForDeletionWhenNoFinalizerIsConfigured
      doesNotAddFinalizerIfConfiguredNotTo
    `,
    "An object that others hold is left alone after our cleanup": `
      doNotCallDeleteIfMarkedForDeletionWhenFinalizerHasAlreadyBeenRemoved
      doesNotCallDeleteIfMarkedForDeletionButNotOurFinalizer
    `,
    "Cleanup may keep the finalizer and come back until it is done":
      "doesNotRemovesTheSetFinalizerIfTheDeleteNotMethodInstructsIt",
    "With an event waiting the reconciler knows that its status write is pointless":
      "doesNotUpdateTheResourceIfNoUpdateUpdateControlIfFinalizerSet",
    "isRelevantUpdate lets a new generation pass, or one that is not known":
      "executeControllerRegardlessGenerationInNonGenerationAwareModeIfFinalizerSet",
    "A run that fails three times and then succeeds runs four times":
      "propagatesRetryInfoToContextIfFinalizerSet",
    "A result that asks for nothing but a visit gets it":
      "setReScheduleToPostExecutionControlFromUpdateControl",
    "Cleanup may write the status, keep the finalizer and come back":
      "reScheduleOnDeleteWithoutFinalizerRemoval",
    "onError tells the failure in the status, attempt by attempt":
      "callErrorStatusHandlerIfImplemented",
    "onError may write the object, and is told of the first failure as such": `
      callErrorStatusHandlerEvenOnFirstError
      errorStatusHandlerCanPatchResource
      ifRetryLimitedToZeroMaxAttemptsErrorHandlerGetsCorrectLastAttempt
    `,
    "onError may declare an error final, or ask to come back later instead of a retry":
      `
      errorHandledByReconcilerMarkedWhenErrorStatusHandledButRetried
      errorHandlerCanInstructNoRetryWithUpdate reSchedulesFromErrorHandler
    `,
    "What onError throws, and a status that cannot be written, do not hide the error":
      "errorNotHandledByReconcilerOnDefaultErrorProcessing",
    "decideAfterRun takes a final error as dealt with":
      "errorHandlerCanInstructNoRetryNoUpdate",
    "EventProcessor without a maximal interval leaves an object alone":
      "canSkipSchedulingMaxDelayIf",
    "EventProcessor never tells of a deletion without all-events mode": `
      isDeleteEventCannotBeTrueIfNotTriggerOnAllEvents
      isDeleteFinalStateUnknownEventCannotBeTrueIfNotTriggerOnAllEvents
    `,
    "What a run is given may be changed freely, what it reads may not":
      "reconcilerContextUsesTheSameInstanceOfResourceAsParam",
  },
  ResourceStateManagerTest: {
    "EventProcessor runs once for many events, and once more for those during a run":
      "marksEvent",
    "EventProcessor hands a deletion to reconcile in all-events mode, and retries it":
      "marksDeleteEvent",
    "EventProcessor hands an event of a source to the retry of a deletion in all-events mode":
      "afterDeleteEventMarkEventIsNotRelevant",
    "EventProcessor keeps nothing of an object that was deleted during its run":
      "cleansUp",
    "EventProcessor takes what waits for a deleted object out of the queue":
      "cannotMarkEventAfterDeleteEventReceived",
    "EventProcessor runs nothing before it is resumed, and loses nothing":
      "listsResourceIDSWithEventsPresent",
    "EventProcessor ignores what sources trigger for primaries that it does not know":
      "createStateOnlyOnResourceEvent",
    "EventProcessor tells which source and object caused a run":
      "createsOnlyResourceEventReturnsPreviouslyCreatedState",
  },
  LinearRateLimiterTest: {
    "WindowLimiter allows the limit in each period and tells the rest of it": `
      acquirePermissionForNewResource
      returnsMinimalDurationToAcquirePermission
      reportedDurationIsTheTimeRemainingNotTheTimeElapsed
    `,
    "WindowLimiter forgets periods that are over": "resetsPeriodAfterLimit",
    "loadOperatorConfig switches off what the program has switched on":
      "rateLimitCanBeTurnedOff",
  },
  ExpectationManagerTest: {
    "Expectations tells what is waited for until it comes true, and once that it has":
      `
      setExpectationShouldStoreExpectation
      checkExpectationShouldReturnFulfilledWhenExpectationMet
      checkExpectationShouldReturnNotFulfilledWhenExpectationNotMet
      getExpectationNameShouldReturnExpectationName
    `,
    "Expectations tells that there is none": `
      checkExpectationShouldReturnEmptyWhenNoExpectation
      getExpectationNameShouldReturnEmptyWhenNoExpectation
    `,
    "Expectations makes the primary run when the time is up, and tells so until removed":
      `
      checkExpectationShouldReturnTimedOutWhenExpectationExpired
      removeExpectationShouldRemoveExpectation
    `,
    "Expectations keeps those of different primaries apart": `
      checkingSpecificExpectation
      shouldHandleMultipleExpectationsForDifferentResources
    `,
    "Expectations replaces what was waited for, its time included":
      "setExpectationShouldReplaceExistingExpectation",
    "Expectations checks, or begins to wait for what is not so yet": `
      checkAndSetExpectationAlreadyMet checkAndSetExpectationNotMet
    `,
  },
  PatchMatchersTest: {
    "jsonPatchChanges finds what a JSON Patch would change": `
      jsonPatchMatchesIdenticalResources
      jsonPatchDoesNotMatchWhenActualHasAdditionalField
      jsonPatchDoesNotMatchWhenDesiredHasAdditionalField
      jsonPatchDoesNotMatchOnDifferentValue
    `,
    "mergePatchChanges finds nothing to do in what is so already": `
      mergePatchMatchesIdenticalResources
      mergePatchMatchesWhenActualHasAdditionalField
    `,
    "mergePatchChanges finds what is otherwise, more, or to be taken away": `
      mergePatchDoesNotMatchWhenDesiredHasAdditionalField
      mergePatchDoesNotMatchOnDifferentValue
    `,
    "replacementChanges looks at the part that is written": `
      statusMatchersIgnoreChangesOutsideStatus
      statusMatchersDoNotMatchOnDifferentStatus
      statusMatchersDifferOnAdditionalActualStatusField
      statusMatchersMatchWhenBothStatusesAbsent
    `,
  },
  GenericRetryExecutionTest: {
    "decideAfterRun retries with growing pauses and then gives up": `
      noNextDelayIfMaxAttemptLimitReached
      remainingDurationEmptyBeforeFirstNextDelay
    `,
    "exponentialBackoff grows by its factor up to the longest pause":
      "canLimitMaxIntervalLength",
    "decideAfterRun without retries waits for the interval": "supportsNoRetry",
    "onError tells the failure in the status, attempt by attempt":
      "supportsIsLastExecution",
    "A run that fails three times and then succeeds runs four times":
      "returnAttemptIndex",
    "decideAfterRun keeps a retry that is planned well ahead": `
      remainingDurationPresentAfterNextDelay
      remainingDurationEmptyAfterIntervalElapsed
    `,
    "EventProcessor retries with growing pauses until a run succeeds":
      "remainingDurationReflectsUpdatedIntervalAfterSubsequentNextDelay",
  },
  ConfigLoaderTest: {
    "loadOperatorConfig without file and variables changes nothing": `
      applyConfigsReturnsNoOpWhenNothingConfigured
      applyControllerConfigsReturnsNoOpWhenNothingConfigured
      leaderElectionIsNotConfiguredWhenNoPropertiesPresent
      retryIsNotConfiguredWhenNoRetryPropertiesPresent
    `,
    "loadOperatorConfig reads every option that a deployment may set": `
      applyConfigsAppliesConcurrentReconciliationThreads
      applyConfigsAppliesBooleanFlags applyConfigsAppliesDurations
      applyControllerConfigsQueriesAllExpectedPropertySuffixes
      rateLimiterQueriesExpectedKeys
      operatorBindingsCoverAllSingleScalarSettersOnConfigurationServiceOverrider
      controllerBindingsCoverAllSingleScalarSettersOnControllerConfigurationOverrider
      retryQueriesExpectedKeys retryIntervalMultiplierIsApplied
      retryMaxIntervalIsApplied retryAllPropertiesApplied
    `,
    "loadOperatorConfig reads file and environment, which counts more": `
      applyConfigsOnlyAppliesPresentKeys
      applyControllerConfigsQueriesKeysPrefixedWithControllerName
      operatorKeyPrefixIsJosdkDot controllerKeyPrefixIsJosdkControllerDot
      leaderElectionConfiguredWithLeaseNameOnly
      leaderElectionConfiguredWithAllProperties retryMaxAttemptsIsApplied
      retryInitialIntervalIsApplied
    `,
    "configuredController keeps controllers apart whose names begin alike": `
      applyControllerConfigsIsolatesControllersByName
      retryIsIsolatedPerControllerName
    `,
    "loadOperatorConfig switches off what the program has switched on":
      "leaderElectionIsNotConfiguredWhenExplicitlyDisabled",
    "leader election that is configured without the name of its Lease is refused":
      "leaderElectionMissingLeaseNameThrowsWhenOtherPropertiesPresent",
    "controllerSettings has the defaults of JOSDK where it has them":
      "retryStartsFromDefaultLimitedExponentialRetryDefaults",
  },
};
