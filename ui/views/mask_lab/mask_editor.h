// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The left side of the Mask Lab: the program of one side with its editor, a slider for each of its parameters, its
// captures and the heads. What is edited here goes to the lab at once. It also reads the model whose layers have masks
// of their own.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ui/models/common/latest_job.h"
#include "ui/models/mask_lab/mask_catalogue.h"
#include "ui/models/mask_lab/mask_lab.h"
#include "ui/widgets/base/controls.h"

class QVBoxLayout;

namespace vitrine::ui {

class CapturePanel;
class HeadsPanel;
class NumberSlider;
class ProgramPanel;

class MaskEditor final : public Surface {
    Q_OBJECT

public:
    /// The lab outlives the editor.
    MaskEditor(MaskLab* lab, QWidget* parent);

    /// The side whose program is edited.
    int side() const { return side_; }
    void setSide(int side);
    /// Shows the study of the side: what is wrong with its text, its parameters, its captures. False where the text has
    /// a problem: parameters and captures stay those of the last good text.
    bool showStudy();
    void showMap();   ///< the heads of the side's map
    void showSizes(); ///< those of the lab
    /// The query and key under the pointer, -1: none, and the line of the program that decides about them, 0: none.
    void setPointed(std::int64_t query, std::int64_t key);
    void setTintedLine(int line, bool blocks);

    /// Reads the layers of a model on a worker; an empty name means that run A names none. `ofRun`: a side that still
    /// shows the example then opens on the first layer with a window, else on the first layer.
    /// `ofRun`: it is run A's, whose longest sequence has `tokens` tokens (0: not known). The editor then shows a layer
    /// of it, unless somebody has written a program.
    void readModel(const std::string& name, const std::map<std::string, std::string>& overrides, bool ofRun = false,
                   std::int64_t tokens = 0);
    bool showsModel(const std::string& name, const std::map<std::string, std::string>& overrides) const {
        return name == modelName_ && overrides == modelOverrides_;
    }
    /// Takes the program of a layer of the model; false: there is no such layer.
    bool chooseLayer(std::int64_t layer);
    bool busy() const { return modelJob_.busy(); }

    ProgramPanel* program() const { return program_; }
    CapturePanel* captures() const { return captures_; }
    HeadsPanel* heads() const { return heads_; }
    std::vector<NumberSlider*> sliders() const; ///< by name
    QList<QWidget*> focusOrder() const;

signals:
    void readoutChanged(const QString& text);
    /// The lengths of run A are wanted as the documents of a capture.
    void fromRunWanted(const QString& capture);

private:
    QWidget* buildParts(QWidget* parent);
    void connectProgram();
    void connectParts();
    void takeExpressions(const QString& mask, const QString& score);
    void showSliders(const std::vector<MaskNumber>& numbers);
    void chooseModelFolder();
    void chooseTensors();

    MaskLab* lab_;
    int side_ = 0;
    ProgramPanel* program_;
    QWidget* parameterHead_ = nullptr;
    QVBoxLayout* sliderColumn_ = nullptr;
    std::map<QString, NumberSlider*> sliders_;
    CapturePanel* captures_ = nullptr;
    HeadsPanel* heads_ = nullptr;
    std::string modelName_;
    std::map<std::string, std::string> modelOverrides_;
    std::optional<MaskModel> model_;
    LatestJob<std::pair<std::optional<MaskModel>, QString>> modelJob_;
};

} // namespace vitrine::ui
