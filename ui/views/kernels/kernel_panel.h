// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of the Kernels view: one kernel with its variant, times, rates, place on the roofline and compile
// facts.

#include <QScrollArea>
#include <map>
#include <optional>

#include "ui/models/kernels/kernel_variants.h"
#include "ui/models/kernels/launch_shapes.h"
#include "ui/models/kernels/scope_facts.h"
#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

class FactTable;
class KernelRoofline;

class KernelPanel final : public QScrollArea {
    Q_OBJECT

public:
    explicit KernelPanel(QWidget* parent = nullptr);

    DockHeader* header() const { return header_; }
    void setStats(KernelStatsPtr stats);
    void setVariants(VariantListPtr variants);
    void setShapes(std::map<std::string, LaunchShape> shapes);
    /// A step, a layer or an op in place of a kernel; nothing: the kernel again.
    void setScope(std::optional<ScopeFacts> scope);
    /// In place of a scope. Empty: the kernel that takes most of the time.
    void setKernel(const QString& name);
    QString kernel() const;                        ///< what is shown where no scope is
    QString name() const { return name_->text(); } ///< of the kernel or scope that is shown
    KernelRoofline* roofline() const { return roofline_; }
    QString asText() const; ///< Markdown

signals:
    void kernelChosen(const QString& name);
    void readoutChanged(const QString& text);

private:
    void refresh();
    void showScope(const ScopeFacts& scope);
    FlatTreePtr timeFacts(const ScopeFacts& scope) const;
    FlatTreePtr workFacts(const ScopeFacts& scope) const;
    FlatTreePtr variantFacts(const UsedVariant* variant) const;
    FlatTreePtr timeFacts(const profiler::KernelRow& row) const;
    FlatTreePtr workFacts(const profiler::KernelRow& row) const;
    FlatTreePtr launchFacts(const std::string& name, const UsedVariant* variant) const;

    DockHeader* header_;
    TextLabel *name_, *hint_;
    FactTable *variant_, *time_, *work_, *launch_;
    QWidget* rooflineHead_;
    KernelRoofline* roofline_;
    KernelStatsPtr stats_;
    VariantListPtr variants_;
    std::map<std::string, LaunchShape> shapes_;
    QString wanted_;
    std::optional<ScopeFacts> scope_;
};

} // namespace vitrine::ui
