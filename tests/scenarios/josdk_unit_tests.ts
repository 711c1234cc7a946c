/**
 * The unit tests of the Java Operator SDK about what the controller does, and
 * which test here shows the same: by suite, by the title of our test. A title
 * stands here without the names in brackets that it may end with; the cases are
 * separated by white space.
 */
export const JOSDK_UNIT_TESTS: Readonly<
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
  ControllerEventSourceTest: {
    "isRelevantUpdate lets a new generation pass, or one that is not known": `
      skipsEventHandlingIfGenerationNotIncreased
      normalExecutionIfGenerationChanges handlesAllEventIfNotGenerationAware
      eventWithNoGenerationProcessedIfNoFinalizer
    `,
    "isRelevantUpdate lets the mark of deletion pass once":
      "dontSkipEventHandlingIfMarkedForDeletion",
    "What is expected of an object goes with it":
      "callsBroadcastsOnResourceEvents",
    "Without the default filters the user's alone decide": `
      withoutDefaultFiltersUserFilterIsAppliedDirectly
      withoutDefaultFiltersUserFilterCanRejectEvents
    `,
    "Filters on primaries and secondaries keep runs away":
      "filtersOutEventsOnAddAndUpdate",
    "accepts asks the filter of the type and the generic one":
      "genericFilterFiltersOutAddUpdateAndDeleteEvents",
    "An own status write causes no run, whichever way it is sent":
      "ownUpdateEchoIsFilteredOutByEventFilter",
    "A change by others during an own write gives another run, with fresh data":
      "foreignUpdateDuringFilteringPropagatesAsUpdate",
    "A deletion during a status write still leads to cleanup":
      "deleteEventDuringFilteringPropagatesAsDelete",
    "OwnWriteWindow lets a foreign change before the echo through":
      "multipleForeignEventsDuringFilteringMergeIntoSingleEvent",
  },
  InternalEventFiltersTest: {
    "isRelevantUpdate lets the mark of deletion pass once":
      "onUpdateMarkedForDeletion",
    "isRelevantUpdate lets a new generation pass, or one that is not known": `
      generationAware acceptsEventIfNoGenerationOnResource
      dontAcceptIfFinalizerNotUsed
    `,
    "isRelevantUpdate lets pass what has or had no finalizer of ours": `
      finalizerCheckedIfConfigured acceptsIfFinalizerWasJustAdded
    `,
  },
  EventFilterSupportTest: {
    "OwnWriteWindow swallows the echo that comes after the answer": `
      startEventFilteringCreatesEventingDetail
      fullLifecycleOwnWriteOnlyEmitsNothingAndCleansUp oneOwnVersionNoEvent
      oneOwnVersionEventReceivedEventForIt
    `,
    "OwnWriteWindow waits only for writes that began before an event": `
      startEventFilteringTwiceReusesEventingDetail
      twoOwnVersionEventReceivedEventOnlyForFirstThenForSecond
      twoOwnVersionEventReceivedOne
      doNotIncludeAfterEventForFirstOwnUpdateIfOtherOwnUpdateIsActive
    `,
    "OwnWrite of an object that is not selected leaves the cache alone":
      "doneEventFilterModifyEmptyWhenNoEventingDetail",
    "OwnWriteWindow does not stay open after a write that changed nothing": `
      doneEventFilterModifyRemovesDetailWhenRemovable
      canBeRemovedIfNoActiveUpdatesOnly
    `,
    "OwnWriteWindow lets every foreign change through and no echo alone": `
      scenarioWithSurroundingEvent
      assertMultipleUpdatesAndIntermediateEventBetween
      receiveIntermediateBetweenTwoOwnUpdates
    `,
    "Informer gives a handler the new and the former state, decoded when read":
      "processEventPropagatesWhenNoEventingDetail",
    "OwnWriteWindow swallows the echo that comes before the answer":
      "processEventHoldsOwnEcho",
    "OwnWriteWindow lets a foreign change before the echo through": `
      processEventEmitsSynthForForeignEvent
      fullLifecycleForeignBeforeOwnEchoEmitsSynth
      oneOwnVersionAdditionalEventReceivedBeforeIt
    `,
    "OwnWriteWindow keeps an added object added when it is merged": `
      processEventEmitsAddedForeignVerbatim
      receivedAsFirstAddEventReturnTheSameEventIfThatIsOnlyRelevant
    `,
    "OwnWrite of an object that vanishes before a relist is told as deleted":
      "handleGhostResourceRemovalDropsWindow",
    "OwnWriteWindow lets a foreign change after the echo through": `
      receivedAddEventAfterOurUpdate receivedAddEventAfterOurUpdateDone
      receiveEventAfterEventForOwnUpdate
    `,
    "OwnWriteWindow lets everything through after a failed write":
      "propagateEventIfNoOwnResourceAndNoActiveUpdate",
    "OwnWriteWindow drops what is held when the object is gone": `
      deleteEventAsLastEvent_simpleCase additionalDeleteEvent
      deleteEventAfterTwoUpdates ghostRemovalDuringActiveUpdateClearsWindow
      ghostRemovalAfterEventsHaveBeenHeldDropsThem
    `,
    "OwnWrite of an object made again under its name is told as deleted and added":
      `
      deleteEventBeforeOurUpdate deleteEventInMiddleTwoUpdates
    `,
    "OwnWrite of an object that is deleted meanwhile leaves no ghost": `
      deleteEventOnMiddleOfOwnUpdate
      deleteEventAsAdditionalEventAfterOwnUpdates
    `,
    "OwnWrite is not told of its echo after a relist that ended before":
      "reListBeforeUpdateStarted",
    "OwnWrite is told of its object when a relist may hide a foreign change":
      "reListHappensAfterUpdate",
    "OwnWriteWindow never swallows what a relist found":
      "reListBetweenTwoUpdates",
    "OwnWrite during a relist is not removed by a list that is older":
      "ghostRemovalDuringReListAffectsOnlyTargetResource",
  },
  EventFilterWindowTest: {
    "OwnWriteWindow swallows the echo that comes after the answer": `
      oneOwnVersionNoEvent oneOwnVersionEventReceivedEventForIt
    `,
    "OwnWriteWindow keeps an added object added when it is merged":
      "receivedAsFirstAddEventReturnTheSameEventIfThatIsOnlyRelevant",
    "OwnWriteWindow lets a foreign change before the echo through":
      "oneOwnVersionAdditionalEventReceivedBeforeIt",
    "OwnWriteWindow waits only for writes that began before an event": `
      twoOwnVersionEventReceivedEventOnlyForFirstThenForSecond
      twoOwnVersionEventReceivedOne
      doNotIncludeAfterEventForFirstOwnUpdateIfOtherOwnUpdateIsActive
    `,
    "OwnWriteWindow lets a foreign change after the echo through": `
      receivedAddEventAfterOurUpdate receivedAddEventAfterOurUpdateDone
      receiveEventAfterEventForOwnUpdate
    `,
    "OwnWriteWindow does not stay open after a write that changed nothing":
      "canBeRemovedIfNoActiveUpdatesOnly",
    "OwnWriteWindow lets everything through after a failed write":
      "propagateEventIfNoOwnResourceAndNoActiveUpdate",
    "OwnWriteWindow lets every foreign change through and no echo alone": `
      assertMultipleUpdatesAndIntermediateEventBetween
      receiveIntermediateBetweenTwoOwnUpdates combinedCaseWithEarlyEvent
    `,
    "OwnWriteWindow drops what is held when the object is gone": `
      deleteEventAsLastEvent_simpleCase additionalDeleteEvent
      additionalEventAndDeleteEvent deleteEventAfterTwoUpdates
      deleteEventAfterTwoUpdatesFinished
    `,
    "OwnWrite of an object made again under its name is told as deleted and added":
      `
      deleteEventBeforeOurUpdate deleteEventInMiddleTwoUpdates
    `,
    "OwnWrite of an object that is deleted meanwhile leaves no ghost": `
      deleteEventOnMiddleOfOwnUpdate
      deleteEventAsAdditionalEventAfterOwnUpdates
    `,
    "OwnWrite is not told of its echo after a relist that ended before":
      "reListBeforeUpdateStarted",
    "OwnWrite is told of its object when a relist may hide a foreign change":
      "reListHappensAfterUpdate",
    "OwnWriteWindow never swallows what a relist found":
      "reListBetweenTwoUpdates",
  },
  InformerEventSourceTest: {
    "OwnWrite is told of a foreign change that arrives after its answer":
      "propagatesEventAndEvictsTempCacheOnVersionMismatch",
    "accepts asks the filter of the type and the generic one": `
      genericFilterRejectsAddUpdateAndDelete onAddFilterRejectsAdd
      onUpdateFilterRejectsUpdate onDeleteFilterRejectsDelete
      ghostCleanupSyntheticDeleteRespectsOnDeleteFilter
      handleEventRespectsOnDeleteFilter handleEventRespectsOnAddFilter
      handleEventRespectsGenericFilter
    `,
    "OwnWrite of an object that is deleted meanwhile leaves no ghost": `
      deletePropagatesWhenTempCacheEmitsDelete
      deleteSwallowsWhenTempCacheReturnsEmpty
      deleteEventDuringOwnUpdateIsPropagated
    `,
    "OwnWrite holds nothing back after a write that failed": `
      failingUpdate_propagatesEventReceivedDuringWindow
      failingUpdate_doesNotPopulateTempCache
      eventReceivedAfterFailedUpdate_isPropagatedNormally
    `,
    "OwnWrite is not told of its echo when that comes before the answer":
      "ownUpdateEventIsDeferredDuringActiveFilter",
    "OwnWrite shows its answer to every read at once, and its echo to others only once":
      `
      listReplacesResourceFromTempCache listAddsGhostResources
    `,
    "OwnWrite is told of a foreign change after its own":
      "listKeepsResourceWhenTempCacheHasOlderVersion",
    "OwnWrite of an object that vanishes before a relist is told as deleted": `
      checkGhostResourcesPropagatesDeleteForMissingTempCacheEntry
      ghostCleanupDiscardsOrphanFilterWindow
    `,
    "OwnWrite during a relist is not removed by a list that is older": `
      checkGhostResourcesKeepsResourcePresentInInformerCache
      ghostCleanupRetainsActiveFilterWindowWhenResourcePresentInInformer
    `,
    "A change of a secondary by others during the own write is delivered":
      "foreignUpdateDuringOwnUpdateIsPropagated",
    "Informer finds objects by indexes made before and after the start": `
      handleEventUpdatesIndexWhenDeletePropagatesFromTempCache
      handleEventDoesNotTouchIndexForNonDeleteAction
    `,
    "Filters on primaries and secondaries keep runs away":
      "handleEventRespectsOnUpdateFilter",
    "The own making and changing of a secondary causes no run":
      "filteringUpdateMapsUpdatedResourceToPrimariesOnlyOnce",
    "Many primaries may share one secondary that does not know them":
      "filteringUpdateFallsBackToMapperWhenNoPrimaryToSecondaryIndex",
    "A write without match is sent although nothing changes, and triggers only when told to":
      "forceUpdateFilterOpensFilterWindowEvenWhenResourceVersionIsNull",
  },
  TemporaryResourceCacheTest: {
    "OwnWrite shows its answer to every read at once, and its echo to others only once":
      `
      updateAddsTheResourceIntoCacheIfTheInformerHasThePreviousResourceVersion
      addOperationAddsTheResourceIfInformerCacheStillEmpty eventAfterFiltering
      putBeforeEventWithEventFiltering
    `,
    "OwnWrite is told of a foreign change after its own": `
      updateNotAddsTheResourceIntoCacheIfLaterVersionKnown
      addOperationNotAddsTheResourceIfInformerCacheNotEmpty
    `,
    "OwnWrite of an object that is deleted meanwhile leaves no ghost": `
      removesResourceFromCache rapidDeletion
    `,
    "OwnWrite is not told of its echo when that comes before the answer": `
      eventReceivedDuringFiltering putAfterEventWithEventFilteringNoPost
    `,
    "OwnWrite is told of a foreign change before its own, once it has ended":
      "putAfterEventWithEventFilteringWithPost",
    "OwnWrite is told of a foreign change that arrives after its answer":
      "intermediateEventPropagatedWhenNoActiveUpdate",
    "OwnWrite of an object that vanishes before a relist is told as deleted": `
      removalOfGhostResources unknownStateDeleteEvictsTempCacheEvenWhenOlder
    `,
    "OwnWrite during a relist is not removed by a list that is older":
      "ghostResourceIsNotRemovedIfLatestSyncVersionIsOlder",
    "Informer changes its namespaces while it runs":
      "ghostRemovalRemovesResourcesOnNotFollowedNamespaces",
    "OwnWrite of an object that is not selected leaves the cache alone":
      "doNotCacheResourceOnPutIfNamespaceIsNotFollowedAnymore",
  },
  TimerEventSourceTest: {
    "SchedulingQueue keeps deadlines by one timer of the clock": `
      schedulesOnce canRescheduleOnceEvent
    `,
    "SchedulingQueue frees a cancelled deadline at once": "canCancelOnce",
    "EventProcessor frees a timer with its object":
      "deRegistersOnceEventSources",
    "SchedulingQueue drains when it is closed": `
      eventNotRegisteredIfStopped eventNotFiredIfStopped
    `,
    "Every run sees the own write of the run before, over 250 objects":
      "handlesInstanceReschedule",
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
    "growingRetry grows by its factor up to the longest pause":
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
