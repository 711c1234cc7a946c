package controller

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "coracle.dev/cronjob/api/v1"
)

const (
	limit    = 10 * time.Second
	interval = 50 * time.Millisecond
)

func newCronJob(name string) *api.CronJob {
	return &api.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: api.CronJobSpec{
			Schedule: "0 0 1 1 *",
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Containers:    []corev1.Container{{Name: "work", Image: "work"}},
					RestartPolicy: corev1.RestartPolicyOnFailure,
				}},
			}},
		},
	}
}

func newJob(name string, owner *api.CronJob) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: owner.Namespace,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(owner, api.GroupVersion.WithKind("CronJob")),
			},
		},
		Spec: owner.Spec.JobTemplate.Spec,
	}
}

func jobsOf(owner *api.CronJob) []batchv1.Job {
	var jobs batchv1.JobList
	Expect(k8s.List(ctx, &jobs, client.InNamespace(owner.Namespace))).To(Succeed())
	var own []batchv1.Job
	for _, job := range jobs.Items {
		if metav1.IsControlledBy(&job, owner) {
			own = append(own, job)
		}
	}
	return own
}

var _ = Describe("CronJob controller", func() {
	It("has the defaults of its schema, and refuses what the schema forbids", func() {
		owner := newCronJob("defaults")
		Expect(k8s.Create(ctx, owner)).To(Succeed())
		Expect(owner.Spec.ConcurrencyPolicy).To(Equal(api.AllowConcurrent))
		wrong := newCronJob("wrong")
		wrong.Spec.ConcurrencyPolicy = "Sometimes"
		wrong.Spec.FailedJobsHistoryLimit = ptr.To[int32](-1)
		err := k8s.Create(ctx, wrong)
		Expect(apierrors.IsInvalid(err)).To(BeTrue())
		Expect(err.Error()).To(ContainSubstring(`Unsupported value: "Sometimes": supported values: "Allow", "Forbid", "Replace"`))
		Expect(err.Error()).To(ContainSubstring("should be greater than or equal to 0"))
	})

	It("lists active jobs in the status", func() {
		owner := newCronJob("active")
		Expect(k8s.Create(ctx, owner)).To(Succeed())
		Consistently(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
			g.Expect(owner.Status.Active).To(BeEmpty())
		}, "300ms", interval).Should(Succeed())

		job := newJob("active-1", owner)
		Expect(k8s.Create(ctx, job)).To(Succeed())
		job.Status.Active = 2
		Expect(k8s.Status().Update(ctx, job)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
			g.Expect(owner.Status.Active).To(HaveLen(1))
			g.Expect(owner.Status.Active[0].Name).To(Equal("active-1"))
			g.Expect(owner.Status.Active[0].UID).To(Equal(job.UID))
			g.Expect(meta.IsStatusConditionTrue(owner.Status.Conditions, "Available")).To(BeTrue())
		}, limit, interval).Should(Succeed())
	})

	It("creates the job of a run that is due, once", func() {
		owner := newCronJob("due")
		owner.Spec.Schedule = "*/1 * * * *"
		owner.Spec.ConcurrencyPolicy = api.ForbidConcurrent
		Expect(k8s.Create(ctx, owner)).To(Succeed())
		ahead.Store(int64(2 * time.Minute))
		defer ahead.Store(0)
		owner.Labels = map[string]string{"touched": "yes"}
		Eventually(func() error {
			return k8s.Patch(ctx, &api.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "due", Namespace: "default"}},
				client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"touched":"yes"}}}`)))
		}, limit, interval).Should(Succeed())
		Eventually(func() []batchv1.Job { return jobsOf(owner) }, limit, interval).Should(HaveLen(1))
		Consistently(func() []batchv1.Job { return jobsOf(owner) }, "300ms", interval).Should(HaveLen(1))
		job := jobsOf(owner)[0]
		Expect(job.Annotations).To(HaveKey(scheduledAnnotation))
		Expect(*job.Spec.Parallelism).To(BeEquivalentTo(1))
		Expect(job.Spec.Selector.MatchLabels).To(HaveKeyWithValue("batch.kubernetes.io/controller-uid", string(job.UID)))
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
			g.Expect(owner.Status.LastScheduleTime).NotTo(BeNil())
		}, limit, interval).Should(Succeed())
	})

	It("keeps as many finished jobs as the limit says", func() {
		owner := newCronJob("history")
		owner.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](1)
		owner.Spec.Suspend = ptr.To(true)
		Expect(k8s.Create(ctx, owner)).To(Succeed())
		start := time.Now().Add(-time.Hour)
		for i, name := range []string{"history-1", "history-2", "history-3"} {
			job := newJob(name, owner)
			Expect(k8s.Create(ctx, job)).To(Succeed())
			at := metav1.NewTime(start.Add(time.Duration(i) * time.Minute))
			job.Status.StartTime = &at
			job.Status.CompletionTime = &metav1.Time{Time: at.Add(time.Second)}
			job.Status.Succeeded = 1
			job.Status.Conditions = []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue},
				{Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
			}
			Expect(k8s.Status().Update(ctx, job)).To(Succeed())
		}
		Eventually(func(g Gomega) {
			var names []string
			for _, job := range jobsOf(owner) {
				names = append(names, job.Name)
			}
			g.Expect(names).To(Equal([]string{"history-3"}))
		}, limit, interval).Should(Succeed())
	})

	It("runs as users with rights of their own", func() {
		user, err := environment.AddUser(userOf("reader"), nil)
		Expect(err).NotTo(HaveOccurred())
		reader, err := client.New(user.Config(), client.Options{Scheme: k8s.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		err = reader.List(ctx, &api.CronJobList{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue())
		Expect(err.Error()).To(ContainSubstring(
			`User "reader" cannot list resource "cronjobs" in API group "batch.tutorial.kubebuilder.io" at the cluster scope`))
	})
})
