"""What several benchmark scripts share: question sets, a baseline to compare with, tables."""
