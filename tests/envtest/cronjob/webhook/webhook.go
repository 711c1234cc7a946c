// Package webhook has the admission webhooks of CronJobs.
package webhook

import (
	"context"
	"fmt"

	"github.com/robfig/cron"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	api "coracle.dev/cronjob/api/v1"
)

// Setup adds the webhooks to a manager.
func Setup(manager ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(manager, &api.CronJob{}).
		WithDefaulter(defaulter{}).WithValidator(validator{}).Complete()
}

// +kubebuilder:webhook:path=/mutate-batch-tutorial-kubebuilder-io-v1-cronjob,mutating=true,failurePolicy=fail,sideEffects=None,groups=batch.tutorial.kubebuilder.io,resources=cronjobs,verbs=create;update,versions=v1,name=mcronjob-v1.kb.io,admissionReviewVersions=v1

type defaulter struct{}

func (defaulter) Default(_ context.Context, job *api.CronJob) error {
	if job.Spec.ConcurrencyPolicy == "" {
		job.Spec.ConcurrencyPolicy = api.AllowConcurrent
	}
	if job.Spec.Suspend == nil {
		job.Spec.Suspend = ptr.To(false)
	}
	if job.Spec.SuccessfulJobsHistoryLimit == nil {
		job.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](3)
	}
	if job.Spec.FailedJobsHistoryLimit == nil {
		job.Spec.FailedJobsHistoryLimit = ptr.To[int32](1)
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-batch-tutorial-kubebuilder-io-v1-cronjob,mutating=false,failurePolicy=fail,sideEffects=None,groups=batch.tutorial.kubebuilder.io,resources=cronjobs,verbs=create;update;delete,versions=v1,name=vcronjob-v1.kb.io,admissionReviewVersions=v1

type validator struct{}

func (validator) ValidateCreate(_ context.Context, job *api.CronJob) (admission.Warnings, error) {
	return warnings(job), validate(job)
}

func (validator) ValidateUpdate(_ context.Context, _, job *api.CronJob) (admission.Warnings, error) {
	return warnings(job), validate(job)
}

func (validator) ValidateDelete(_ context.Context, job *api.CronJob) (admission.Warnings, error) {
	if job.Annotations["protected"] == "true" {
		return nil, fmt.Errorf("%s is protected", job.Name)
	}
	return nil, nil
}

func warnings(job *api.CronJob) admission.Warnings {
	if job.Spec.Schedule == "* * * * *" {
		return admission.Warnings{"a run every minute is a lot"}
	}
	return nil
}

func validate(job *api.CronJob) error {
	var faults field.ErrorList
	// Names of jobs have eleven characters more, and at most 63.
	if len(job.Name) > validation.DNS1035LabelMaxLength-11 {
		faults = append(faults, field.Invalid(field.NewPath("metadata", "name"), job.Name,
			"must be no more than 52 characters"))
	}
	if _, err := cron.ParseStandard(job.Spec.Schedule); err != nil {
		faults = append(faults, field.Invalid(field.NewPath("spec", "schedule"), job.Spec.Schedule, err.Error()))
	}
	if len(faults) == 0 {
		return nil
	}
	return apierrors.NewInvalid(api.GroupVersion.WithKind("CronJob").GroupKind(), job.Name, faults)
}
