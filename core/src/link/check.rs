//! `host check`: phase by phase, mu's own steps and those that the plugin's link and job seams add (SEAM-08, LINK-10 to
//! LINK-14, JOB-08).

use std::ops::ControlFlow;

use mu_protocol::declaration::Vocabulary;
use mu_protocol::messages::checks::{Phase, Step, StepOk, Steps};
use mu_protocol::messages::error::ErrorKind;
use mu_protocol::messages::method::{Call, Read};
use mu_protocol::messages::values::{Name, RemotePath};
use mu_protocol::messages::{job, link};

use crate::call_error::CallError;
use crate::cli::failure::{Failure, Kind};
use crate::deadlines;
use crate::link::{Link, LinkError, Ran, shell};
use crate::os::Os;

/// The step that hands control back to the operator, whoever reports it (LINK-14).
const HANDBACK: &str = "handback";

/// A step, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// mu's own by a bare name, a plugin's behind the plugin's name (LINK-13).
    pub step: String,
    /// How it went; `None` when that is not known (TRN-19, TMO-09).
    pub ok: Option<StepOk>,
    /// What to show beside it.
    pub detail: String,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The steps, in order.
    pub steps: Vec<Shown>,
    /// Why the host is not sound: the first reason.
    pub failure: Option<Failure>,
}

impl Report {
    fn add(&mut self, step: impl Into<String>, ok: Option<StepOk>, detail: impl Into<String>) {
        self.steps.push(Shown { step: step.into(), ok, detail: detail.into() });
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }
}

impl<O: Os> Link<'_, O> {
    /// Takes every step, in order. A step that fails does not end the check; one that hands control back does (LINK-14), and
    /// so does a plugin that does not answer.
    pub async fn check(&self, agent: Option<&Name>) -> Report {
        let mut report = Report::default();
        for phase in Phase::ALL {
            if self.check_phase(*phase, agent, &mut report).await.is_break() {
                break;
            }
        }
        report
    }

    async fn check_phase(&self, phase: Phase, agent: Option<&Name>, report: &mut Report) -> ControlFlow<()> {
        match phase {
            Phase::Template => self.check_template(report),
            Phase::Reach => self.check_reach(report).await?,
            Phase::Agent => self.check_agent(agent, report).await?,
        }
        if self.declared.checks.contains(&phase) {
            let root = self.host.repo.as_ref().and_then(|repo| RemotePath::new(repo).ok());
            let params = link::CheckStepsParams { target: self.target(), phase, root, agent: agent.cloned() };
            let asked = match self.budget(link::CheckStepsParams::METHOD, deadlines::TIMEOUT) {
                Ok(budget) => self.holding(budget, self.ask(&params)).await,
                Err(error) => Err(error),
            };
            self.take(phase, asked, report)?;
        }
        if let Some(job) = &self.plugin.declaration.seams.job
            && job.checks.contains(&phase)
        {
            let params = job::CheckStepsParams { target: self.target(), phase, agent: agent.cloned() };
            let asked = self.ask(&params).await;
            self.take(phase, asked, report)?;
        }
        ControlFlow::Continue(())
    }

    async fn ask<C: Read<Result = Steps>>(&self, params: &C) -> Result<Steps, LinkError> {
        let budget = self.budget(C::METHOD, deadlines::TIMEOUT)?;
        Ok(self.invocation.call(&self.start(), params, budget).await?)
    }

    /// The steps of a plugin, under its name (LINK-13).
    fn take(&self, phase: Phase, asked: Result<Steps, LinkError>, report: &mut Report) -> ControlFlow<()> {
        let plugin = &self.host.plugin;
        let steps = match asked {
            Ok(steps) => steps,
            Err(error) => return self.failed(&format!("{plugin}:{}", phase.name()), &error, report),
        };
        for Step { step, ok, detail } in steps {
            if step.as_str() == HANDBACK {
                return self.hand_back(&detail, report);
            }
            self.step(format!("{plugin}:{step}"), ok, detail, report);
        }
        ControlFlow::Continue(())
    }

    fn step(&self, step: impl Into<String>, ok: StepOk, detail: impl Into<String>, report: &mut Report) {
        let (step, detail) = (step.into(), detail.into());
        if ok == StepOk::Failed {
            let message = format!("host {}: step {step} failed: {detail}", self.host.name);
            report.fail(Failure::new(Kind::CheckFailed, message));
        }
        report.add(step, Some(ok), detail);
    }

    fn hand_back(&self, remedy: &str, report: &mut Report) -> ControlFlow<()> {
        report.add(HANDBACK, Some(StepOk::Failed), remedy);
        let message = format!("host {} needs a person: {remedy}", self.host.name);
        report.fail(Failure::new(Kind::NeedsHuman, message));
        ControlFlow::Break(())
    }

    /// A call of the check that has no result. One that the plugin itself refused leaves the other steps worth taking.
    fn failed(&self, step: &str, error: &LinkError, report: &mut Report) -> ControlFlow<()> {
        if let LinkError::Call(CallError::Refused(_, refused)) = error {
            match &refused.kind {
                ErrorKind::Human { remedy } => return self.hand_back(remedy.as_str(), report),
                ErrorKind::Retryable | ErrorKind::Permanent => {
                    self.step(step, StepOk::Failed, error.to_string(), report);
                    return ControlFlow::Continue(());
                }
                ErrorKind::UnknownOutcome => {}
            }
        }
        let known = !matches!(error, LinkError::Call(error) if !error.is_definite());
        report.add(step, known.then_some(StepOk::Failed), error.to_string());
        report.fail(self.failure(error));
        ControlFlow::Break(())
    }

    /// Whether there is a way to fetch from it.
    fn check_template(&self, report: &mut Report) {
        match (&self.host.fetch_template, self.declared.fetch) {
            (_, true) => self.step("fetch", StepOk::Passed, "by the link", report),
            (Some(template), false) => self.step("fetch", StepOk::Passed, template, report),
            (None, false) => {
                let detail = "the link serves no fetch, and the host has no template";
                self.step("fetch", StepOk::Failed, detail, report);
            }
        }
    }

    /// Whether a script runs there, and its repository is one.
    async fn check_reach(&self, report: &mut Report) -> ControlFlow<()> {
        self.script("reach", "true", report).await?;
        if let Some(repo) = &self.host.repo {
            let script = format!("git -C {} rev-parse --git-dir", shell::quote(repo));
            self.script("repo", &script, report).await?;
        }
        ControlFlow::Continue(())
    }

    /// Whether the harness is there.
    async fn check_agent(&self, agent: Option<&Name>, report: &mut Report) -> ControlFlow<()> {
        let Some(agent) = agent else { return ControlFlow::Continue(()) };
        self.script("agent", &format!("command -v {agent}"), report).await
    }

    /// A step of mu's own: a script, which passes with status 0.
    async fn script(&self, step: &str, script: &str, report: &mut Report) -> ControlFlow<()> {
        let login = RemotePath::new(".").expect("it is not empty");
        let Ran { run, said, .. } = match self.exec(script, &login, deadlines::TIMEOUT).await {
            Ok(ran) => ran,
            Err(error) => return self.failed(step, &error, report),
        };
        let (ok, text) = match run.exit_code {
            Some(0) => (StepOk::Passed, &run.stdout),
            _ => (StepOk::Failed, &run.stderr),
        };
        let line = text.lines().next().unwrap_or_default();
        let detail = match (run.exit_code, said) {
            (Some(0), _) => line.to_owned(),
            (Some(status), _) if line.is_empty() => format!("`{script}` ended with status {status}"),
            (Some(status), _) => format!("`{script}` ended with status {status}: {line}"),
            (None, Some(said)) => format!("how `{script}` ended is not known: {said}"),
            (None, None) => format!("`{script}` was cut off at its timeout"),
        };
        self.step(step, ok, detail, report);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests;
