/** The suites about event sources, and which events they let pass. */
export const JOSDK_EVENT_UNIT_TESTS: Readonly<
  Record<string, Readonly<Record<string, string>>>
> = {
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
};
