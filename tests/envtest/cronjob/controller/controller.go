// Package controller has the controller of CronJobs.
package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "coracle.dev/cronjob/api/v1"
)

const (
	ownerIndex          = ".metadata.controller"
	scheduledAnnotation = "batch.tutorial.kubebuilder.io/scheduled-at"
	mostMissedRuns      = 100
)

// Reconciler creates and removes the jobs of CronJobs.
type Reconciler struct {
	client.Client
	Scheme *runtime.Scheme
	// Now is the time; that of the system by default.
	Now func() time.Time
}

// +kubebuilder:rbac:groups=batch.tutorial.kubebuilder.io,resources=cronjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch.tutorial.kubebuilder.io,resources=cronjobs/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete

// Reconcile brings the jobs of one CronJob into line with its schedule.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var owner api.CronJob
	if err := r.Get(ctx, request.NamespacedName, &owner); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var jobs batchv1.JobList
	if err := r.List(ctx, &jobs, client.InNamespace(request.Namespace),
		client.MatchingFields{ownerIndex: request.Name}); err != nil {
		return ctrl.Result{}, err
	}
	active, succeeded, failed, last := sortJobs(jobs.Items)
	if err := r.writeStatus(ctx, &owner, active, last); err != nil {
		return ctrl.Result{}, err
	}
	for _, kept := range []struct {
		jobs  []*batchv1.Job
		limit *int32
	}{{succeeded, owner.Spec.SuccessfulJobsHistoryLimit}, {failed, owner.Spec.FailedJobsHistoryLimit}} {
		if err := r.removeOld(ctx, kept.jobs, kept.limit); err != nil {
			return ctrl.Result{}, err
		}
	}
	if owner.Spec.Suspend != nil && *owner.Spec.Suspend {
		return ctrl.Result{}, nil
	}
	missed, next, err := r.schedule(&owner)
	if err != nil {
		// No later try mends a wrong schedule; a change of it will.
		log.FromContext(ctx).Error(err, "Cannot read the schedule")
		return ctrl.Result{}, nil
	}
	result := ctrl.Result{RequeueAfter: next.Sub(r.Now())}
	deadline := owner.Spec.StartingDeadlineSeconds
	switch {
	case missed.IsZero():
		return result, nil
	case deadline != nil && missed.Add(time.Duration(*deadline)*time.Second).Before(r.Now()):
		return result, nil
	case owner.Spec.ConcurrencyPolicy == api.ForbidConcurrent && len(active) > 0:
		return result, nil
	case owner.Spec.ConcurrencyPolicy == api.ReplaceConcurrent:
		for _, job := range active {
			if err := r.remove(ctx, job); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	job, err := r.newJob(&owner, missed)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Create(ctx, job); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	return result, nil
}

func sortJobs(jobs []batchv1.Job) (active, succeeded, failed []*batchv1.Job, last *time.Time) {
	for i := range jobs {
		job := &jobs[i]
		switch finished(job) {
		case "":
			active = append(active, job)
		case batchv1.JobFailed:
			failed = append(failed, job)
		case batchv1.JobComplete:
			succeeded = append(succeeded, job)
		}
		at, err := time.Parse(time.RFC3339, job.Annotations[scheduledAnnotation])
		if err == nil && (last == nil || last.Before(at)) {
			last = &at
		}
	}
	return active, succeeded, failed, last
}

func finished(job *batchv1.Job) batchv1.JobConditionType {
	for _, condition := range job.Status.Conditions {
		if (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) &&
			condition.Status == corev1.ConditionTrue {
			return condition.Type
		}
	}
	return ""
}

func (r *Reconciler) writeStatus(
	ctx context.Context, owner *api.CronJob, active []*batchv1.Job, last *time.Time,
) error {
	owner.Status.LastScheduleTime = nil
	if last != nil {
		owner.Status.LastScheduleTime = &metav1.Time{Time: *last}
	}
	owner.Status.Active = nil
	for _, job := range active {
		ref, err := reference.GetReference(r.Scheme, job)
		if err != nil {
			return err
		}
		owner.Status.Active = append(owner.Status.Active, *ref)
	}
	meta.SetStatusCondition(&owner.Status.Conditions, metav1.Condition{
		Type: "Available", Status: metav1.ConditionTrue, Reason: "Reconciled",
		ObservedGeneration: owner.Generation,
	})
	return r.Status().Update(ctx, owner)
}

func (r *Reconciler) removeOld(ctx context.Context, jobs []*batchv1.Job, limit *int32) error {
	if limit == nil {
		return nil
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		if a.Status.StartTime == nil || b.Status.StartTime == nil {
			return 0
		}
		return a.Status.StartTime.Compare(b.Status.StartTime.Time)
	})
	for i := 0; i < len(jobs)-int(*limit); i++ {
		if err := r.remove(ctx, jobs[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) remove(ctx context.Context, job *batchv1.Job) error {
	return client.IgnoreNotFound(
		r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// schedule gives the last missed run, if any, and the next one.
func (r *Reconciler) schedule(owner *api.CronJob) (missed, next time.Time, err error) {
	schedule, err := cron.ParseStandard(owner.Spec.Schedule)
	if err != nil {
		return missed, next, fmt.Errorf("unparseable schedule %q: %w", owner.Spec.Schedule, err)
	}
	now := r.Now()
	earliest := owner.CreationTimestamp.Time
	if owner.Status.LastScheduleTime != nil {
		earliest = owner.Status.LastScheduleTime.Time
	}
	if deadline := owner.Spec.StartingDeadlineSeconds; deadline != nil {
		if since := now.Add(-time.Duration(*deadline) * time.Second); since.After(earliest) {
			earliest = since
		}
	}
	runs := 0
	for at := schedule.Next(earliest); !at.After(now); at = schedule.Next(at) {
		missed = at
		if runs++; runs > mostMissedRuns {
			return time.Time{}, time.Time{}, fmt.Errorf("more than %d missed runs", mostMissedRuns)
		}
	}
	return missed, schedule.Next(now), nil
}

func (r *Reconciler) newJob(owner *api.CronJob, at time.Time) (*batchv1.Job, error) {
	template := owner.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			// The name of a run is fixed, so that it is created once.
			Name:        fmt.Sprintf("%s-%d", owner.Name, at.Unix()),
			Namespace:   owner.Namespace,
			Labels:      template.Labels,
			Annotations: map[string]string{scheduledAnnotation: at.Format(time.RFC3339)},
		},
		Spec: template.Spec,
	}
	for key, value := range template.Annotations {
		job.Annotations[key] = value
	}
	return job, ctrl.SetControllerReference(owner, job, r.Scheme)
}

// SetupWithManager adds the controller to a manager.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	if r.Now == nil {
		r.Now = time.Now
	}
	err := manager.GetFieldIndexer().IndexField(context.Background(), &batchv1.Job{}, ownerIndex,
		func(object client.Object) []string {
			owner := metav1.GetControllerOf(object)
			if owner == nil || owner.APIVersion != api.GroupVersion.String() || owner.Kind != "CronJob" {
				return nil
			}
			return []string{owner.Name}
		})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		For(&api.CronJob{}).Owns(&batchv1.Job{}).Named("cronjob").Complete(r)
}
