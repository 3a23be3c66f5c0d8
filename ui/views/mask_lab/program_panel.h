// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The program of one side: catalogue and layers of a model, the expressions that are chosen, the editor with what is
// wrong below it.

#include <QMenu>
#include <array>
#include <functional>

#include "ui/models/mask_lab/mask_catalogue.h"
#include "ui/models/mask_lab/mask_study.h"
#include "ui/widgets/base/controls.h"

class QComboBox;
class QStackedWidget;

namespace vitrine::ui {

class CodeEdit;

class ProgramPanel final : public QWidget {
    Q_OBJECT

public:
    explicit ProgramPanel(QWidget* parent = nullptr);

    /// Each side has an editor of its own, with its own undo.
    void setSource(int side, const MaskSource& source);
    void showSide(int side);
    /// What became of the shown source: `error` is of its mask, "" when there is one.
    void setStudy(const MaskStudyPtr& study, const QString& error);
    /// Layers for the menu; `why` says why there are none.
    void setModel(std::optional<MaskModel> model, const QString& why);
    /// Sizes that entries of the catalogue fit themselves to.
    void setSizesOf(std::function<MaskSizes()> sizes) { sizes_ = std::move(sizes); }

    CodeEdit* editor() const { return editors_[static_cast<std::size_t>(side_)]; }
    QComboBox* maskChoice() const { return mask_; }
    QComboBox* scoreChoice() const { return score_; }
    QPushButton* catalogueButton() const { return catalogue_; }
    QPushButton* layersButton() const { return layers_; }
    QPushButton* helpButton() const { return help_; }
    QString status() const;

signals:
    void textEdited();
    void expressionsChosen(const QString& mask, const QString& score);
    void sourceChosen(const vitrine::ui::MaskSource& source);
    void layerChosen(int layer);
    void modelFolderWanted();
    void captureWanted(const QString& name);

private:
    void fillCatalogue();
    void fillLayers();
    void fillChoice(QComboBox* combo, const QStringList& offers, const std::string& asked, const std::string& own);
    void announceChoices();

    std::array<CodeEdit*, 2> editors_{};
    QStackedWidget* stack_;
    int side_ = 0;
    QComboBox *mask_, *score_;
    QPushButton *catalogue_, *layers_, *help_;
    QMenu *catalogueMenu_, *layersMenu_;
    QLabel* statusIcon_;
    TextLabel* status_;
    std::function<MaskSizes()> sizes_;
    std::optional<MaskModel> model_;
    QString whyNoModel_, undefined_;
    bool filling_ = false;
};

} // namespace vitrine::ui
