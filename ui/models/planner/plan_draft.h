// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the Planner's form holds: an experiment that is being thought about, with a model, a device, a context and the
// numbers and techniques of its workload. A value; GUI thread.

#include <QString>
#include <QStringList>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/workload/planner/plan_sets.h"

namespace vitrine::ui {

/// A device to plan for.
struct PlanDevice {
    QString id;   ///< of a shipped profile, "h100-80gb"; "cpu" is this machine's processor
    QString name; ///< "NVIDIA H100 80GB"
};
std::vector<PlanDevice> planDevices();
/// The device by the name that a run's environment has; empty: none is called that.
QString deviceNamed(const QString& name);

/// A number of the form, which the workload has.
struct PlanNumber {
    std::string key;
    QString label;
    std::int64_t value = 0, low = 1, high = 1; ///< the ends of its slider
};

/// An option of several values, named as the Run form names it.
struct PlanChoice {
    std::string key;
    QString label, tip;
    QString value;                                   ///< that is chosen; empty: unset
    std::vector<std::pair<QString, QString>> values; ///< and how forms write them

    bool operator==(const PlanChoice& other) const = default;
};

class PlanDraft {
public:
    /// An experiment without a model.
    PlanDraft();
    /// What a run did, or what another view hands over; nothing where that cannot be planned over a context.
    static std::optional<PlanDraft> of(const std::string& experimentJson);

    /// Workloads that can be planned over a context: names and titles.
    static std::vector<std::pair<QString, QString>> workloads();

    QString workload() const;
    void setWorkload(const QString& name);
    QString model() const;
    void setModel(const QString& model);
    const QString& device() const { return device_; }
    void setDevice(const QString& id) { device_ = id; }
    std::int64_t context() const { return context_; }
    void setContext(std::int64_t tokens);
    bool asks() const; ///< the context is a prompt that several answers follow: reinforcement learning
    bool complete() const { return !model().isEmpty(); } ///< it can be priced

    std::vector<PlanNumber> numbers() const;
    void setNumber(const std::string& key, std::int64_t value);
    std::vector<PlanChoice> choices() const;
    void setChoice(const std::string& key, const QString& value);
    void edit(const std::vector<engine::OptionEdit>& edits);
    const engine::Experiment& experiment() const { return experiment_; }

    /// The experiment to price, on Meta with the device's profile.
    engine::Experiment toPlan() const;
    /// The experiment to run: on whatever device there is, with its data where it has any.
    engine::Experiment toRun() const;
    /// "vitrine plan finetune --model ...".
    QString commandLine() const;

private:
    engine::Experiment experiment_;
    QString device_;
    std::int64_t context_ = 8192;
};

} // namespace vitrine::ui
